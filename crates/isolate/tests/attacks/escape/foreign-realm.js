// attack: Looks for a value of another realm among what the host hands out: its Function would compile text.
// expect: ok
// result: {"foreign":[]}

export default {
  tools: {
    attack: {
      description: "foreign realm",
      input: { type: "object" },
      async run(input, ctx) {
        const foreign = [];
        const check = (name, value) => {
          for (let object = value; object !== null; object = Object.getPrototypeOf(object)) {
            if (Object.getPrototypeOf(object) === null && object !== Object.prototype && object !== ctx) foreign.push(name);
          }
          if (typeof value === "function" && !(value instanceof Function)) foreign.push(name);
        };
        const refusal = await fetch("http://h/").catch((error) => error);
        check("input", input);
        check("error", refusal);
        if (!(refusal instanceof TypeError)) foreign.push("the error is no TypeError of ours");
        check("promise", fetch("http://h/").catch(() => {}));
        check("clone", structuredClone({ a: [new Map()] }).a[0]);
        check("buffer", new TextEncoder().encode("x").buffer);
        check("signal", ctx.signal);
        check("log", ctx.log);
        check("url", new URL("http://h/").searchParams);
        check("domexception", new DOMException("x"));
        return { foreign };
      },
    },
  },
};
