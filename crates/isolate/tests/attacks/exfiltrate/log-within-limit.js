// attack: Logs most of what it may in call after call: the count is each call's own.
// expect: ok
// result: {"lines":40}
// calls: 3
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "log within limit",
      input: { type: "object" },
      async run() {
        let lines = 0;
        for (; lines < 40; lines++) console.log("x".repeat(1000));
        return { lines };
      },
    },
  },
};
