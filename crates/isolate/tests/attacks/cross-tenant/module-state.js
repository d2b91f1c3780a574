// attack: Counts its calls in the module's own state.
// expect: ok
// result: {"count":1}
// calls: 3

let count = 0;

export default {
  tools: {
    attack: {
      description: "module state",
      input: { type: "object" },
      async run() {
        return { count: ++count };
      },
    },
  },
};
