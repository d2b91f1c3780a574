// attack: Array.join with a long separator writes 256 MB flat in one native call.
// expect: memory_limit
// limits: cpu_ms=5000 memory_mb=64

export default {
  tools: {
    attack: {
      description: "string joined",
      input: { type: "object" },
      async run() {
        return { length: new Array(2 ** 22).join("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef").length };
      },
    },
  },
};
