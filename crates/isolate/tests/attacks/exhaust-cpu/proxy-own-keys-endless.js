// attack: A proxy answers ownKeys with a list of four million names that it makes up on demand.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "proxy own keys endless",
      input: { type: "object" },
      async run() {
        const names = new Proxy({}, { get: (_, key) => (key === "length" ? 2 ** 22 : `k${String(key)}`) });
        return { keys: Reflect.ownKeys(new Proxy({}, { ownKeys: () => names })).length };
      },
    },
  },
};
