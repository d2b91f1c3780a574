// attack: The input schema's toJSON never returns.
// expect: init_limit

export default {
  tools: {
    attack: {
      description: "d",
      input: {
        toJSON() {
          for (;;);
        },
      },
      run: () => 1,
    },
  },
};
