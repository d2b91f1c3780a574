// attack: Patches the internationalisation objects and their shared prototypes.
// expect: ok
// result: {"text":"1,234.5","seen":false}
// calls: 3

export default {
  tools: {
    attack: {
      description: "intl patched",
      input: { type: "object" },
      async run() {
        const seen = Intl.mark === true;
        const text = new Intl.NumberFormat("en-US").format(1234.5);
        Intl.mark = true;
        Object.defineProperty(Intl.NumberFormat.prototype, "format", { get: () => () => "forged" });
        Intl.DateTimeFormat = class {};
        return { text, seen };
      },
    },
  },
};
