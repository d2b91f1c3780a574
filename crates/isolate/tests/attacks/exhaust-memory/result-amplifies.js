// attack: Returns one megabyte five hundred times, so that it is the host's serialisation that grows.
// expect: memory_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "result amplifies",
      input: { type: "object" },
      async run() {
        return new Array(500).fill("x".repeat(1_000_000));
      },
    },
  },
};
