// attack: An address of two megabytes with a header of the same size.
// expect: ok
// result: {"refused":true}
// limits: cpu_ms=2000

export default {
  tools: {
    attack: {
      description: "fetch huge url",
      input: { type: "object" },
      async run() {
        const long = "x".repeat(2 << 20);
        let refused = false;
        try {
          await fetch(`https://evil.example/${long}`, { headers: { "x-long": long } });
        } catch (error) {
          refused = error instanceof TypeError;
        }
        return { refused };
      },
    },
  },
};
