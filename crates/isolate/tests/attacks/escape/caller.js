// attack: Asks functions for their callers, the way old code finds out who called it.
// expect: ok
// result: {"caller":"TypeError","callee":"TypeError"}

export default {
  tools: {
    attack: {
      description: "caller",
      input: { type: "object" },
      async run() {
        const attempt = (read) => {
          try {
            return typeof read();
          } catch (error) {
            return error.name;
          }
        };
        function strict() {
          return attempt(() => strict.caller);
        }
        function args() {
          return attempt(() => arguments.callee);
        }
        return { caller: strict(), callee: args() };
      },
    },
  },
};
