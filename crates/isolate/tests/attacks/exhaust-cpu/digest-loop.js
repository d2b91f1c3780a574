// attack: Hashes megabytes for ever; the work is native and every step is awaited.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "digest loop",
      input: { type: "object" },
      async run() {
        const block = new Uint8Array(1 << 20);
        for (;;) await crypto.subtle.digest("SHA-512", block);
      },
    },
  },
};
