// attack: Goes exactly up to a small limit of host calls, call after call: the count is each call's own.
// expect: ok
// result: {"refused":3}
// calls: 3
// limits: host_calls=3

export default {
  tools: {
    attack: {
      description: "host calls at the limit",
      input: { type: "object" },
      async run() {
        let refused = 0;
        for (let i = 0; i < 3; i++) await fetch("https://evil.example/").catch(() => refused++);
        return { refused };
      },
    },
  },
};
