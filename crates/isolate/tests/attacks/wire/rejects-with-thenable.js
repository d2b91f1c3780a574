// attack: Rejects with a thenable, which must not be awaited, and with a promise that is itself rejected.
// expect: tool_error

export default {
  tools: {
    attack: {
      description: "rejects with thenable",
      input: { type: "object" },
      async run() {
        await Promise.reject({
          then() {
            for (;;);
          },
        });
      },
    },
  },
};
