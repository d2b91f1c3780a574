// attack: Collects millions of matches, each an array with groups and indices.
// expect: memory_limit
// limits: memory_mb=64 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "regexp matches",
      input: { type: "object" },
      async run() {
        return { matches: [..."ab".repeat(1_000_000).matchAll(/(?<first>a)(?<second>b)/dg)].length };
      },
    },
  },
};
