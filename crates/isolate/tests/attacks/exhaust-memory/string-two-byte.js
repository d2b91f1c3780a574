// attack: A two-byte string by padding, flattened by indexing.
// expect: memory_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "string two byte",
      input: { type: "object" },
      async run() {
        const wide = "\u4e2d".padEnd(2 ** 28, "\u6587\u5b57");
        return { code: wide.charCodeAt(wide.length - 1), upper: wide.toUpperCase().length };
      },
    },
  },
};
