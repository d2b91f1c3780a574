// attack: Recompiles a regular expression from inside its own execution, through lastIndex and through a callback.
// expect: ok
// result: {"text":"xx","matched":null}

export default {
  tools: {
    attack: {
      description: "regexp recompiled",
      input: { type: "object" },
      async run() {
        const pattern = /(a)(b)?/g;
        const text = "aa".replace(pattern, () => {
          pattern.compile("(((((((((z)))))))))", "g");
          return "x";
        });
        const sticky = /a/y;
        sticky.lastIndex = {
          valueOf() {
            sticky.compile("(((b)))", "y");
            return 0;
          },
        };
        return { text, matched: sticky.exec("a") };
      },
    },
  },
};
