// attack: Decodes bytes that each become a replacement character, twice their size.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "text decoder output",
      input: { type: "object" },
      async run() {
        const bytes = new Uint8Array(2 ** 23).fill(0xff);
        const keep = [];
        for (;;) keep.push(new TextDecoder().decode(bytes) + keep.length);
      },
    },
  },
};
