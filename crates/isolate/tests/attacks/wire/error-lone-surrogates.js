// attack: Throws a message with half surrogates, NUL bytes and terminal sequences.
// expect: tool_error
// message: start

export default {
  tools: {
    attack: {
      description: "error lone surrogates",
      input: { type: "object" },
      async run() {
        throw new TypeError("start \ud800 \u0000 \udfff \u001b[31m \u202e end");
      },
    },
  },
};
