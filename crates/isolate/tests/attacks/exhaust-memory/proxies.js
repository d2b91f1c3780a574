// attack: Wraps one object in proxy after proxy and keeps every layer.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "proxies",
      input: { type: "object" },
      async run() {
        let layer = {};
        for (;;) layer = new Proxy(layer, {});
      },
    },
  },
};
