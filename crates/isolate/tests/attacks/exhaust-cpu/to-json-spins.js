// attack: The result's toJSON never returns: the work is done by the host's own serialisation.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "to json spins",
      input: { type: "object" },
      async run() {
        return {
          toJSON() {
            for (;;);
          },
        };
      },
    },
  },
};
