// attack: Stops the clock for whoever comes next.
// expect: ok
// result: {"stopped":false}
// calls: 3

export default {
  tools: {
    attack: {
      description: "date replaced",
      input: { type: "object" },
      async run() {
        const stopped = Date.now() === 0 || new Date().getFullYear() === 1970;
        Date.now = () => 0;
        performance.now = () => 0;
        globalThis.Date = class extends Date {
          constructor() {
            super(0);
          }
        };
        return { stopped };
      },
    },
  },
};
