// attack: A proxy whose prototype is a fresh proxy, and so on: instanceof and for-in walk up for ever.
// expect: tool_error
// message: Maximum call stack size exceeded
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "proxy endless prototypes",
      input: { type: "object" },
      async run() {
        const rootless = () => new Proxy({}, { getPrototypeOf: rootless });
        let walked = 0;
        for (const key in rootless()) walked += key.length;
        return { walked, is: rootless() instanceof Map };
      },
    },
  },
};
