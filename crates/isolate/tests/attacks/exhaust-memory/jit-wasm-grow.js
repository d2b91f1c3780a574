// attack: Grows a WebAssembly memory step by step and touches what it gets.
// expect: memory_limit
// jit: true
// limits: cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "jit wasm grow",
      input: { type: "object" },
      async run() {
        const memory = new WebAssembly.Memory({ initial: 1 });
        let pages = 1;
        try {
          for (; pages < 32_768; pages += 256) {
            memory.grow(256);
            new Uint8Array(memory.buffer, pages * 65_536).fill(1);
          }
        } catch (error) {
          if (!(error instanceof RangeError)) throw error;
        }
        return { bounded: pages < 32_768 };
      },
    },
  },
};
