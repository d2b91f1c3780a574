// attack: Installs a stack on host objects and the global object, to replace what the host reads from them.
// expect: ok
// result: {"done":true}

export default {
  tools: {
    attack: {
      description: "capture stack trace on host",
      input: { type: "object" },
      async run(input, ctx) {
        for (const target of [globalThis, console, ctx.signal, fetch, Object.prototype, Promise.prototype]) {
          try {
            Error.captureStackTrace(target);
          } catch {}
        }
        delete Object.prototype.stack;
        return { done: true };
      },
    },
  },
};
