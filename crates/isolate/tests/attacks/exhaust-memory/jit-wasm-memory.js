// attack: A WebAssembly memory of one gigabyte, touched.
// expect: memory_limit
// jit: true
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "jit wasm memory",
      input: { type: "object" },
      async run() {
        try {
          const memory = new WebAssembly.Memory({ initial: 16_384 });
          new Uint8Array(memory.buffer).fill(1);
          return { grown: true };
        } catch (error) {
          return { grown: !(error instanceof RangeError) };
        }
      },
    },
  },
};
