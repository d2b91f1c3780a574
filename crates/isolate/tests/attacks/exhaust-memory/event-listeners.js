// attack: Adds listeners to a signal that never fires.
// expect: cpu_limit | memory_limit
// limits: memory_mb=32 cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "event listeners",
      input: { type: "object" },
      async run() {
        // Adding a listener may look through those that are there, which is quadratic: then CPU ends it first.
        const { signal } = new AbortController();
        for (let i = 0; ; i++) signal.addEventListener("abort", () => i);
      },
    },
  },
};
