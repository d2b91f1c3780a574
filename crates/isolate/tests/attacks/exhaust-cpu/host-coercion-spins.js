// attack: Hands a host function an argument whose conversion to a string never returns.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "host coercion spins",
      input: { type: "object" },
      async run() {
        return {
          url: new URL({
            toString() {
              for (;;);
            },
          }).href,
        };
      },
    },
  },
};
