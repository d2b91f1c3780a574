// attack: Imports files as JSON, text, bytes and WebAssembly through import attributes.
// expect: ok
// result: {"imported":[]}

export default {
  tools: {
    attack: {
      description: "import attributes",
      input: { type: "object" },
      async run() {
        const imported = [];
        for (const type of ["json", "text", "bytes", "css", "wasm", "webassembly"]) {
          try {
            await import("/etc/passwd", { with: { type } });
            imported.push(type);
          } catch {}
        }
        return { imported };
      },
    },
  },
};
