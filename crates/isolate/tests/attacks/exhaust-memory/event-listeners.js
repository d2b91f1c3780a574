// attack: Adds listeners to a signal that never fires.
// expect: cpu_limit
// limits: memory_mb=32 cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "event listeners",
      input: { type: "object" },
      async run() {
        // Adding one looks through those that are there, so CPU time goes before memory does.
        const { signal } = new AbortController();
        for (let i = 0; ; i++) signal.addEventListener("abort", () => i);
      },
    },
  },
};
