// attack: Shrinks a resizable buffer while a native fill is converting its argument.
// expect: ok
// result: {"length":8}

export default {
  tools: {
    attack: {
      description: "resize during fill",
      input: { type: "object" },
      async run() {
        const buffer = new ArrayBuffer(1 << 16, { maxByteLength: 1 << 16 });
        const bytes = new Uint8Array(buffer);
        bytes.fill({
          valueOf() {
            buffer.resize(8);
            return 1;
          },
        });
        return { length: bytes.length };
      },
    },
  },
};
