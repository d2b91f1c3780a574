// attack: Reads a property through a hundred thousand proxies, one native frame each.
// expect: tool_error
// message: Maximum call stack size exceeded
// limits: cpu_ms=2000

export default {
  tools: {
    attack: {
      description: "deep proxy chain",
      input: { type: "object" },
      async run() {
        let proxy = {};
        for (let i = 0; i < 100_000; i++) proxy = new Proxy(proxy, {});
        return { value: proxy.missing };
      },
    },
  },
};
