// attack: Returns NUL bytes, a byte order mark, a DEL and line breaks in names and values.
// expect: ok
// result: {"a\u0000b":"\u0000","﻿":"","\u001b[2J":"\r\n"}

export default {
  tools: {
    attack: {
      description: "result control characters",
      input: { type: "object" },
      async run() {
        return { "a\u0000b": "\u0000", "\ufeff": "\u007f", "\u001b[2J": "\r\n" };
      },
    },
  },
};
