// attack: Hides the global object behind a proxy and shadows the names the host might look up again.
// expect: ok
// result: {"done":true}

export default {
  tools: {
    attack: {
      description: "global this replaced",
      input: { type: "object" },
      async run() {
        const spy = new Proxy(globalThis, {});
        for (const name of ["globalThis", "self", "console", "Promise", "Object", "Array", "JSON", "Error", "undefined", "NaN"]) {
          try {
            Object.defineProperty(globalThis, name, { value: name === "undefined" ? 1 : spy, configurable: true });
          } catch {}
        }
        try {
          Object.setPrototypeOf(globalThis, spy);
        } catch {}
        return { done: true };
      },
    },
  },
};
