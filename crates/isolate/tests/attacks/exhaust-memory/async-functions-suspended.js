// attack: Starts async functions that wait for ever, each kept alive by the promise it waits for.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "async functions suspended",
      input: { type: "object" },
      async run() {
        const gates = [];
        const wait = async (i) => {
          await new Promise((resolve) => gates.push(resolve));
          return i;
        };
        for (let i = 0; ; i++) wait(i);
      },
    },
  },
};
