// attack: The result is a proxy of an array that claims 2^26 elements.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "result array length lies",
      input: { type: "object" },
      async run() {
        return new Proxy([], { get: (target, key) => (key === "length" ? 2 ** 26 : key === "toJSON" || key === "then" ? undefined : 0) });
      },
    },
  },
};
