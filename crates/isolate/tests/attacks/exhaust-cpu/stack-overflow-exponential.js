// attack: Catches its own stack overflow at every depth and recurses again: 2^depth frames in a bounded stack.
// expect: cpu_limit

function dive() {
  try {
    dive();
  } finally {
    dive();
  }
}

export default {
  tools: {
    attack: {
      description: "stack overflow exponential",
      input: { type: "object" },
      async run() {
        try {
          dive();
        } catch {}
        return { survived: true };
      },
    },
  },
};
