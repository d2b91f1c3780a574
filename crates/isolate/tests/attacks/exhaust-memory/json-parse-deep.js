// attack: JSON.parse of four million nested arrays out of eight megabytes of text.
// expect: memory_limit
// limits: cpu_ms=20000 memory_mb=64

export default {
  tools: {
    attack: {
      description: "json parse deep",
      input: { type: "object" },
      async run() {
        const depth = 4_000_000;
        return { length: JSON.parse("[".repeat(depth) + "]".repeat(depth)).length };
      },
    },
  },
};
