// attack: Clones a chain of two hundred thousand objects.
// expect: tool_error
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "deep structured clone",
      input: { type: "object" },
      async run() {
        let chain = null;
        for (let i = 0; i < 200_000; i++) chain = { chain };
        return { cloned: structuredClone(chain) !== chain };
      },
    },
  },
};
