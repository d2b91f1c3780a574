// attack: Asks for more random bytes in one call than the standard allows, to exhaust the kernel's generator.
// expect: ok
// result: {"error":"QuotaExceededError"}

export default {
  tools: {
    attack: {
      description: "random quota",
      input: { type: "object" },
      async run() {
        try {
          crypto.getRandomValues(new Uint8Array(65_537));
          return { error: null };
        } catch (error) {
          return { error: error.name };
        }
      },
    },
  },
};
