// attack: Breaks a long Thai text into words with the dictionary of the internationalisation library.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "intl segmenter",
      input: { type: "object" },
      async run() {
        const words = new Intl.Segmenter("th", { granularity: "word" });
        let n = 0;
        for (const word of words.segment("ภาษาไทยไม่มีวรรค".repeat(200_000))) n += word.index;
        return { n };
      },
    },
  },
};
