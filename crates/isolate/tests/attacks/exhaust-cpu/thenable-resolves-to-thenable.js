// attack: Returns a thenable that resolves to a thenable that resolves to a thenable, without end.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "thenable resolves to thenable",
      input: { type: "object" },
      async run() {
        const endless = () => ({ then: (resolve) => resolve(endless()) });
        return endless();
      },
    },
  },
};
