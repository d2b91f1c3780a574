// attack: Array.fromAsync drains an async generator that never ends, from inside a builtin.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "array from async endless",
      input: { type: "object" },
      async run() {
        async function* endless() {
          for (;;) yield 0;
        }
        return { length: (await Array.fromAsync(endless())).length };
      },
    },
  },
};
