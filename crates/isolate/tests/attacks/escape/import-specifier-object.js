// attack: A specifier that is one text when it is checked and another when it is used.
// expect: ok
// result: {"imported":false,"readings":1}

export default {
  tools: {
    attack: {
      description: "import specifier object",
      input: { type: "object" },
      async run() {
        let readings = 0;
        const specifier = {
          toString() {
            return readings++ === 0 ? "harmless" : "node:fs";
          },
        };
        let imported = true;
        await import(specifier).catch(() => (imported = false));
        return { imported, readings };
      },
    },
  },
};
