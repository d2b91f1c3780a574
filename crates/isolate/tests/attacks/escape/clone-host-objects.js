// attack: Sends host objects, functions and proxies through structuredClone to get at what is inside them.
// expect: ok
// result: {"cloned":[]}

export default {
  tools: {
    attack: {
      description: "clone host objects",
      input: { type: "object" },
      async run(input, ctx) {
        const cloned = [];
        const objects = { fetch, ctxLog: ctx.log, signal: ctx.signal, url: new URL("http://h/"), promise: Promise.resolve(), proxy: new Proxy({}, {}), weak: new WeakMap(), symbol: Symbol("s"), stream: new WritableStream().getWriter() };
        for (const [name, object] of Object.entries(objects)) {
          try {
            // A copy without anything of its own in it is as good as a refusal.
            if (Reflect.ownKeys(structuredClone(object)).length > 0) cloned.push(name);
          } catch (error) {
            if (error.name !== "DataCloneError") cloned.push(`${name}: ${error}`);
          }
        }
        return { cloned };
      },
    },
  },
};
