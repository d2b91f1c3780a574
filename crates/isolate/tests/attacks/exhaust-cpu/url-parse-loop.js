// attack: Parses a URL of ten thousand dot segments again and again in native code.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "url parse loop",
      input: { type: "object" },
      async run() {
        const long = `http://host/${"a/../".repeat(10_000)}`;
        let n = 0;
        for (;;) n += new URL(long).href.length;
      },
    },
  },
};
