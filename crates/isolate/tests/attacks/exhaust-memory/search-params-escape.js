// attack: Percent-encoding makes nine bytes of every character.
// expect: memory_limit
// limits: memory_mb=64 cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "search params escape",
      input: { type: "object" },
      async run() {
        const params = new URLSearchParams({ q: "\u4e2d".repeat(2 ** 23) });
        const keep = [];
        for (;;) keep.push(`${keep.length}${params}`);
      },
    },
  },
};
