// attack: Hides state under a registered symbol on builtin objects.
// expect: ok
// result: {"seen":false}
// calls: 3

export default {
  tools: {
    attack: {
      description: "symbol registry",
      input: { type: "object" },
      async run() {
        const mark = Symbol.for("cross-tenant mark");
        const seen = mark in Object || mark in Symbol || mark in globalThis;
        Object[mark] = Symbol[mark] = globalThis[mark] = "left behind";
        return { seen };
      },
    },
  },
};
