// attack: One indexOf with a needle of a million equal letters that fails at its last one.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "string search quadratic",
      input: { type: "object" },
      async run() {
        const hay = "a".repeat(20_000_000);
        const needle = "a".repeat(1_000_000) + "b";
        let n = 0;
        for (;;) n += hay.indexOf(needle);
      },
    },
  },
};
