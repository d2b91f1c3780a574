// attack: Arguments nested deeper than allowed, to overflow whoever parses them.
// expect: argument_limit
// limits: argument_depth=8
// input: {"a":[[[[[[[[[[1]]]]]]]]]]}

export default {
  tools: {
    attack: {
      description: "input too deep",
      input: { type: "object" },
      async run(input) {
        return input;
      },
    },
  },
};
