// attack: Encodes a megabyte of text again and again in native code.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "text encoder loop",
      input: { type: "object" },
      async run() {
        const encoder = new TextEncoder();
        const text = "\u4e2d".repeat(300_000);
        let bytes = 0;
        for (;;) bytes += encoder.encode(text).length;
      },
    },
  },
};
