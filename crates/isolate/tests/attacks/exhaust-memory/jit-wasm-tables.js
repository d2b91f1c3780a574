// attack: Keeps WebAssembly tables of ten million entries.
// expect: memory_limit
// jit: true
// limits: cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "jit wasm tables",
      input: { type: "object" },
      async run() {
        const keep = [];
        for (;;) keep.push(new WebAssembly.Table({ element: "anyfunc", initial: 10_000_000 }));
      },
    },
  },
};
