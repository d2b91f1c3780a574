// attack: A getter deep inside the result never returns.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "result getter spins",
      input: { type: "object" },
      async run() {
        return {
          a: [
            {
              get b() {
                for (;;);
              },
            },
          ],
        };
      },
    },
  },
};
