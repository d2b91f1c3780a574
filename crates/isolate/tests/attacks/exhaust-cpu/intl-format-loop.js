// attack: Lets the internationalisation library format dates in many locales without end.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "intl format loop",
      input: { type: "object" },
      async run() {
        const locales = ["de-DE", "ja-JP-u-ca-japanese", "ar-EG", "th-TH-u-ca-buddhist"];
        for (let i = 0; ; i++) new Date(i * 1e9).toLocaleString(locales[i % locales.length]);
      },
    },
  },
};
