// attack: Starts a thousand requests in one turn, before the first refusal can come back.
// expect: host_call_limit
// limits: cpu_ms=2000

export default {
  tools: {
    attack: {
      description: "host calls at once",
      input: { type: "object" },
      async run() {
        await Promise.allSettled(Array.from({ length: 1000 }, (_, i) => fetch(`https://evil.example/${i}`)));
        return { made: 1000 };
      },
    },
  },
};
