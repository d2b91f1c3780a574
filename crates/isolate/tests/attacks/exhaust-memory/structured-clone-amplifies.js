// attack: Clones an array that holds one megabyte of text a thousand times: the copy has every one of them.
// expect: memory_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "structured clone amplifies",
      input: { type: "object" },
      async run() {
        return { length: structuredClone(new Array(1000).fill("x".repeat(1_000_000))).length };
      },
    },
  },
};
