// attack: Array.join of one string, sixty-five thousand times: 256 MB written flat in one native call.
// expect: memory_limit
// limits: cpu_ms=5000 memory_mb=64

export default {
  tools: {
    attack: {
      description: "string joined",
      input: { type: "object" },
      async run() {
        return { length: new Array(2 ** 16).fill("0123456789abcdef".repeat(256)).join("").length };
      },
    },
  },
};
