// attack: Imports the modules by which other runtimes reach the system.
// expect: ok
// result: {"imported":[]}

export default {
  tools: {
    attack: {
      description: "import builtins",
      input: { type: "object" },
      async run() {
        const specifiers = ["node:fs", "fs", "node:process", "node:vm", "node:worker_threads", "node:inspector", "node:module", "bun:ffi", "ext:core/ops", "bulkhead:runtime", "bulkhead:web", "internal:host", "cloudflare:workers"];
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
