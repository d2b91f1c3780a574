// attack: Writes a line to the log for as long as it lives.
// expect: log_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "log many lines",
      input: { type: "object" },
      async run() {
        for (let i = 0; ; i++) console.log(`line ${i}: the quick brown fox jumps over the lazy dog`);
      },
    },
  },
};
