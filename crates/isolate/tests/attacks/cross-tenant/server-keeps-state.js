// attack: None: within the boundary `server` state is kept on purpose, globals included.
// expect: ok
// result: {"before":{call}}
// calls: 3
// boundary: server

export default {
  tools: {
    attack: {
      description: "server keeps state",
      input: { type: "object" },
      async run() {
        globalThis.calls = (globalThis.calls ?? -1) + 1;
        return { before: globalThis.calls };
      },
    },
  },
};
