// attack: A regular expression whose loops multiply when unrolled, to fill the compiler's own memory.
// expect: ok
// result: {"matched":false}
// limits: cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "regexp huge",
      input: { type: "object" },
      async run() {
        let source = "z";
        for (let i = 0; i < 2000; i++) source += `|(?:a{1,500}b{1,500}c${i}){1,50}`;
        return { matched: new RegExp(source).test("aaab") };
      },
    },
  },
};
