// attack: Throws an Error whose name, message, stack and cause are all getters that never return.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "thrown getters spin",
      input: { type: "object" },
      async run() {
        const error = new Error("x");
        for (const key of ["name", "message", "stack", "cause", "code", "constructor"]) {
          Object.defineProperty(error, key, {
            get() {
              for (;;);
            },
          });
        }
        throw error;
      },
    },
  },
};
