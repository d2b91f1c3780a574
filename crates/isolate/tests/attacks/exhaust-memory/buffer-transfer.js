// attack: Grows a buffer by transfer, each step a copy that is larger than the last.
// expect: memory_limit
// limits: cpu_ms=20000 memory_mb=64

export default {
  tools: {
    attack: {
      description: "buffer transfer",
      input: { type: "object" },
      async run() {
        let buffer = new ArrayBuffer(2 ** 20);
        for (;;) buffer = buffer.transfer(buffer.byteLength * 2);
      },
    },
  },
};
