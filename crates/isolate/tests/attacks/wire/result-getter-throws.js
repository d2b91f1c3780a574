// attack: A getter throws a value that is no error while the host writes the result.
// expect: tool_error
// message: not an error

export default {
  tools: {
    attack: {
      description: "result getter throws",
      input: { type: "object" },
      async run() {
        return {
          get a() {
            throw "not an error";
          },
        };
      },
    },
  },
};
