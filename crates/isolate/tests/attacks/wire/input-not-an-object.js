// attack: Arguments that are no object reach a tool that expects one.
// expect: ok
// result: {"type":"object","array":true}
// input: [1,[2,[3]]]

export default {
  tools: {
    attack: {
      description: "input not an object",
      input: { type: "object" },
      async run(input) {
        return { type: typeof input, array: Array.isArray(input) };
      },
    },
  },
};
