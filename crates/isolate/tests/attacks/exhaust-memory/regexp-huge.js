// attack: A regular expression whose loops multiply when unrolled, to fill the compiler's own memory.
// expect: tool_error | ok | memory_limit
// limits: cpu_ms=20000 memory_mb=64

export default {
  tools: {
    attack: {
      description: "regexp huge",
      input: { type: "object" },
      async run() {
        // V8 may refuse it as too large or compile it within its bounds; neither harms anybody.
        let source = "z";
        for (let i = 0; i < 2000; i++) source += `|(?:a{1,500}b{1,500}c${i}){1,50}`;
        return { matched: new RegExp(source).test("aaab") };
      },
    },
  },
};
