// attack: Spreads the flood over all methods of the console, each below its own bound if there were one.
// expect: log_limit
// limits: cpu_ms=10000

export default {
  tools: {
    attack: {
      description: "log every method",
      input: { type: "object" },
      async run() {
        const rows = Array.from({ length: 50 }, (_, i) => ({ i, text: "x".repeat(50) }));
        for (let i = 0; ; i++) {
          console.info(i, rows);
          console.warn(`%s %o`, i, rows);
          console.debug("y".repeat(500));
          console.dir(rows);
          console.table(rows);
          console.trace("here");
          console.count("counter");
          console.assert(false, rows);
        }
      },
    },
  },
};
