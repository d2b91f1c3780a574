// attack: Returns half a surrogate pair in a value and in a name; JSON escapes it and not every parser takes it.
// expect: ok

export default {
  tools: {
    attack: {
      description: "result lone surrogates",
      input: { type: "object" },
      async run() {
        // It is valid JSON by its grammar, and the host carries it as text.
        return { text: "\ud800", "\udfff": "x\udc00y" };
      },
    },
  },
};
