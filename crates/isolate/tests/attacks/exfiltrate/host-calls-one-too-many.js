// attack: Goes one request beyond a small limit.
// expect: host_call_limit
// limits: host_calls=3

export default {
  tools: {
    attack: {
      description: "host calls one too many",
      input: { type: "object" },
      async run() {
        for (let i = 0; i < 4; i++) await fetch("https://evil.example/").catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 1000));
        return { made: 4 };
      },
    },
  },
};
