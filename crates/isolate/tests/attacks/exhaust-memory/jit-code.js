// attack: Makes ever new functions hot, so that the compiler's code is what grows.
// expect: memory_limit | cpu_limit
// jit: true
// limits: memory_mb=64 cpu_ms=10000

export default {
  tools: {
    attack: {
      description: "jit code",
      input: { type: "object" },
      async run() {
        // Whether the heap or the CPU budget goes first depends on how much of it the compiler finds worth compiling.
        const keep = [];
        const make = (i) => {
          const f = (x) => {
            let y = x;
            for (let k = 0; k < 100; k++) y = (y * 31 + k + i) | 0;
            return y;
          };
          return f;
        };
        for (let i = 0; ; i++) {
          const f = make(i);
          for (let k = 0; k < 50; k++) f(k);
          keep.push(f, new Array(64).fill(f));
        }
      },
    },
  },
};
