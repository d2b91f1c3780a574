// attack: Compiles ever new regular expressions and keeps their code.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "regexps",
      input: { type: "object" },
      async run() {
        const keep = [];
        for (let i = 0; ; i++) {
          const pattern = new RegExp(`(a|b|c)*x${i}y{1,20}(?:z|${i}){1,30}`);
          pattern.test("aabbccx1yz");
          keep.push(pattern);
        }
      },
    },
  },
};
