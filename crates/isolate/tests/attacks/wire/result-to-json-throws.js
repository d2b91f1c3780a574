// attack: toJSON throws while the host writes the result.
// expect: tool_error
// message: thrown by toJSON

export default {
  tools: {
    attack: {
      description: "result to json throws",
      input: { type: "object" },
      async run() {
        return {
          a: 1,
          b: {
            toJSON() {
              throw new RangeError("thrown by toJSON");
            },
          },
        };
      },
    },
  },
};
