// attack: Appends to one header name for ever and keeps each combined value: a little in, ever more out.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "headers combine",
      input: { type: "object" },
      async run() {
        const headers = new Headers();
        const value = "v".repeat(1 << 16);
        const keep = [];
        for (;;) {
          headers.append("x-bomb", value);
          const combined = headers.get("x-bomb");
          // Makes one piece of it.
          if (/z/.test(combined)) break;
          keep.push(combined);
        }
      },
    },
  },
};
