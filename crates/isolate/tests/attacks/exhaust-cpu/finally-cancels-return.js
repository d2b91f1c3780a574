// attack: A labelled continue in finally cancels every return, so the function can never be left.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "finally cancels return",
      input: { type: "object" },
      async run() {
        again: for (;;) {
          try {
            return { left: true };
          } finally {
            continue again;
          }
        }
      },
    },
  },
};
