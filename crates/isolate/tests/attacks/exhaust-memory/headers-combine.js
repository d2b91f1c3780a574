// attack: Appends to one header name for ever: its combined value grows by a megabyte a time.
// expect: memory_limit | cpu_limit | tool_error
// limits: memory_mb=32 cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "headers combine",
      input: { type: "object" },
      async run() {
        // Reading the combined value copies all of it, so CPU may end this first; or the string is too long.
        const headers = new Headers();
        const value = "v".repeat(1 << 20);
        const keep = [];
        for (;;) {
          headers.append("x-bomb", value);
          keep.push(`${keep.length}${headers.get("x-bomb")}`);
        }
      },
    },
  },
};
