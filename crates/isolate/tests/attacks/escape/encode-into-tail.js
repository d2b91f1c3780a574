// attack: Looks for old memory behind the result of TextEncoder and in the rest of its buffer.
// expect: ok
// result: {"tail":0}

export default {
  tools: {
    attack: {
      description: "encode into tail",
      input: { type: "object" },
      async run() {
        let tail = 0;
        for (let length = 0; length < 300; length += 7) {
          const bytes = new TextEncoder().encode("\u00e9".repeat(length));
          tail += bytes.buffer.byteLength - bytes.byteLength;
        }
        return { tail };
      },
    },
  },
};
