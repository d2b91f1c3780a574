// attack: Returns ten thousand nested arrays: V8 writes them without recursion, and whoever parses them may not.
// expect: ok
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "result nested",
      input: { type: "object" },
      async run() {
        // The host carries it as text; it must never walk it with its own stack.
        let nested = [];
        for (let i = 0; i < 10_000; i++) nested = [nested];
        return nested;
      },
    },
  },
};
