// attack: One chain of pending promises, each waiting for the one before.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "promise chain",
      input: { type: "object" },
      async run() {
        let chain = new Promise(() => {});
        const head = chain;
        const keep = [head];
        for (let i = 0; ; i++) {
          chain = chain.then(() => i);
          if (i % 1024 === 0) keep.push(chain);
        }
      },
    },
  },
};
