// attack: Parses malformed dates with the legacy parser, which tries every rule before it gives up.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "date parse loop",
      input: { type: "object" },
      async run() {
        const text = "(".repeat(500) + "Tue Mar 01 2022 foo 00:00:00 GMT+0130";
        let bad = 0;
        for (;;) if (Number.isNaN(Date.parse(text))) bad++;
      },
    },
  },
};
