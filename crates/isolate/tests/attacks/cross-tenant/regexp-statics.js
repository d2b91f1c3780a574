// attack: Reads the last match of whoever ran before out of RegExp's static properties.
// expect: ok
// result: {"last":false}
// calls: 3

export default {
  tools: {
    attack: {
      description: "regexp statics",
      input: { type: "object" },
      async run(input) {
        const last = [RegExp.$1, RegExp.lastMatch, RegExp.input, RegExp.leftContext].some((text) => text.includes("4111"));
        /card (\d+)/.exec("card 4111111111111111");
        return { last };
      },
    },
  },
};
