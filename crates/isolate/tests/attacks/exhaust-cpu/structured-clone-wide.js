// attack: Clones an array of three million numbers in native code.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "structured clone wide",
      input: { type: "object" },
      async run() {
        const wide = new Array(3_000_000).fill(0.5);
        return { length: structuredClone(wide).length };
      },
    },
  },
};
