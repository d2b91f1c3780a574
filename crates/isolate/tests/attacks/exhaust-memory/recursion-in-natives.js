// attack: Recurses through native code: sort, replace, JSON, proxies, getters and coercion in one cycle.
// expect: tool_error
// message: Maximum call stack size exceeded
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "recursion in natives",
      input: { type: "object" },
      async run() {
        const proxy = new Proxy(
          {},
          {
            get() {
              return JSON.stringify({
                toJSON() {
                  return "abc".replace(/b/, () => [2, 1].sort(() => Number({ valueOf: () => proxy.again })));
                },
              });
            },
          },
        );
        return { value: proxy.start };
      },
    },
  },
};
