// attack: Looks for the globals by which other runtimes give away files, processes, modules and other realms.
// expect: ok
// result: {"found":[]}

export default {
  tools: {
    attack: {
      description: "globals of other runtimes",
      input: { type: "object" },
      async run() {
        const names = [
          "process", "require", "module", "exports", "Buffer", "global", "__dirname", "__filename", "Deno", "Bun", "importScripts",
          "Worker", "SharedWorker", "ShadowRealm", "window", "document", "parent", "top", "opener", "localStorage", "indexedDB",
          "caches", "$262", "d8", "gc", "load", "read", "readbuffer", "readline", "print", "quit", "version", "os", "std", "java",
          "Packages", "ActiveXObject", "WScript", "workerd", "__bulkhead", "bootstrap", "primordials", "internalBinding",
        ];
        return { found: names.filter((name) => name in globalThis || typeof globalThis[name] !== "undefined") };
      },
    },
  },
};
