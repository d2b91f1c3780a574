// attack: Awaits settled values for ever; no turn of the event loop ever ends.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "await loop",
      input: { type: "object" },
      async run() {
        for (;;) await 0;
      },
    },
  },
};
