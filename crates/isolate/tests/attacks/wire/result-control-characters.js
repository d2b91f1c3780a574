// attack: Returns NUL bytes, line separators, a byte order mark and a DEL in names and values.
// expect: ok
// result: {"a\u0000b":"\u0000","\u2028":"\u2029","\ufeff":"\u007f","\u001b[2J":"\r\n"}

export default {
  tools: {
    attack: {
      description: "result control characters",
      input: { type: "object" },
      async run() {
        return { "a\u0000b": "\u0000", "\u2028": "\u2029", "\ufeff": "\u007f", "\u001b[2J": "\r\n" };
      },
    },
  },
};
