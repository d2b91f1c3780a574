// attack: Unicode normalisation of millions of combining characters in native code.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "string normalize",
      input: { type: "object" },
      async run() {
        const text = "\u1e9b\u0323".repeat(2_000_000);
        return { length: text.normalize("NFKD").normalize("NFC").length };
      },
    },
  },
};
