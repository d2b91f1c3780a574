// attack: Returns a thenable that takes the resolver and keeps it.
// expect: time_limit
// limits: time_ms=300

export default {
  tools: {
    attack: {
      description: "thenable never calls back",
      input: { type: "object" },
      async run() {
        return { then() {} };
      },
    },
  },
};
