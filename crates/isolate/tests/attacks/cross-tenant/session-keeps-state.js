// attack: None: within one session state is kept on purpose, and this shows that the other programs would notice it.
// expect: ok
// result: {"before":{call}}
// calls: 3
// boundary: session

let calls = 0;

export default {
  tools: {
    attack: {
      description: "session keeps state",
      input: { type: "object" },
      async run() {
        return { before: calls++ };
      },
    },
  },
};
