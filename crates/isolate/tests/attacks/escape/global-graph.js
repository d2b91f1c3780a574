// attack: Walks everything reachable from the globals, the context and fresh host objects, looking for a capability.
// expect: ok
// result: {"suspicious":[]}
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "global graph",
      input: { type: "object" },
      async run(input, ctx) {
        const SUSPICIOUS = /^(op_|_?binding|internalBinding|hostCall|readFile|writeFile|openSync|spawn|fork$|execve|execFile|execSync|dlopen|connect$|listen$|syscall|ptrace|getenv|setFlags)/;
        const samples = [
          ctx, new URL("http://h/p?q"), new AbortController(), new TextDecoder(), new ReadableStream(), new Headers(),
          new Event("e"), new Blob(["b"]), Promise.resolve(), await fetch("http://h/").catch((error) => error),
        ];
        const seen = new Set();
        const suspicious = [];
        const queue = [globalThis, ...samples];
        while (queue.length > 0 && seen.size < 20_000) {
          const object = queue.pop();
          if ((typeof object !== "object" && typeof object !== "function") || object === null || seen.has(object)) continue;
          seen.add(object);
          if (typeof object === "function" && SUSPICIOUS.test(object.name)) suspicious.push(object.name);
          queue.push(Object.getPrototypeOf(object));
          for (const key of Reflect.ownKeys(object)) {
            const property = Reflect.getOwnPropertyDescriptor(object, key);
            queue.push(property.value, property.get, property.set);
          }
        }
        return { suspicious };
      },
    },
  },
};
