// attack: Makes one refused request after another, to use the host's attention without end.
// expect: host_call_limit
// limits: cpu_ms=2000

export default {
  tools: {
    attack: {
      description: "host calls in a row",
      input: { type: "object" },
      async run() {
        for (let i = 0; i < 1000; i++) await fetch("https://evil.example/").catch(() => {});
        return { made: 1000 };
      },
    },
  },
};
