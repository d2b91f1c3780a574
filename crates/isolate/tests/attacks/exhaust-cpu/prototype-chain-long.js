// attack: Looks up a missing property through a prototype chain of 20,000 objects, again and again.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "prototype chain long",
      input: { type: "object" },
      async run() {
        let tail = Object.create(null);
        for (let i = 0; i < 20_000; i++) tail = Object.create(tail);
        let missing = 0;
        for (;;) if (tail["missing" + (missing % 7)] === undefined) missing++;
      },
    },
  },
};
