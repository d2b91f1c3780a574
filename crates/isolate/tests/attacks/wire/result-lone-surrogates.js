// attack: Returns half a surrogate pair in a value and in a name; JSON escapes it and not every parser takes it.
// expect: ok | tool_error

export default {
  tools: {
    attack: {
      description: "result lone surrogates",
      input: { type: "object" },
      async run() {
        // It is valid JSON by its grammar. A host may carry it or refuse it; it must not take it for a broken protocol.
        return { text: "\ud800", "\udfff": "x\udc00y" };
      },
    },
  },
};
