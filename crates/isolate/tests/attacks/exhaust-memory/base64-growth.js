// attack: btoa of btoa of btoa, a third larger each time.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "base64 growth",
      input: { type: "object" },
      async run() {
        let text = "x".repeat(1 << 16);
        for (;;) text = btoa(text);
      },
    },
  },
};
