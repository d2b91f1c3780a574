// attack: Installs a stack formatter that never returns and leaves it to the host to read the stack.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "prepare stack trace spins in host",
      input: { type: "object" },
      async run() {
        Error.prepareStackTrace = () => {
          for (;;);
        };
        null.property;
      },
    },
  },
};
