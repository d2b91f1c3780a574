// attack: Installs a stack formatter that never returns and reads a stack.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "prepare stack trace spins",
      input: { type: "object" },
      async run() {
        Error.prepareStackTrace = () => {
          for (;;);
        };
        return { stack: new Error("x").stack };
      },
    },
  },
};
