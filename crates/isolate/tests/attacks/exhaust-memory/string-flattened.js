// attack: One string of half a gigabyte, cheap until a regular expression makes V8 flatten it past every heap callback.
// expect: memory_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "string flattened",
      input: { type: "object" },
      async run() {
        const rope = "a".repeat(2 ** 29 - 25);
        return { found: /b/.test(rope) };
      },
    },
  },
};
