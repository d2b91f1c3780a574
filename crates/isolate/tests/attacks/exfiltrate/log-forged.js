// attack: Logs line breaks, terminal sequences, NUL bytes and half surrogates, to forge the lines of others.
// expect: ok
// result: {"logged":true}

export default {
  tools: {
    attack: {
      description: "log forged",
      input: { type: "object" },
      async run(input, ctx) {
        console.log("ok\n2026-01-01T00:00:00Z ERROR tenant=other msg=forged");
        console.log("\u001b[2J\u001b]0;title\u0007\u001b[31mred", "\u0000", "\ud800", "\u202etxt.exe", "\r\n\r\n");
        console.log("%c%s%o%%%d", "color:red", "\u001b[0m", { "\n": "\u2028" }, Number.NaN);
        ctx.log("\u009b31m", new Error("\u001b[1m"));
        return { logged: true };
      },
    },
  },
};
