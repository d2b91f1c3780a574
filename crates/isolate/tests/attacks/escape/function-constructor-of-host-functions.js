// attack: Takes the constructor of the host's own functions, in case they come from a realm that may compile.
// expect: ok
// result: {"escaped":[]}

export default {
  tools: {
    attack: {
      description: "function constructor of host functions",
      input: { type: "object" },
      async run(input, ctx) {
        const escaped = [];
        const hosts = { fetch, setTimeout, structuredClone, log: console.log, now: performance.now, ctxLog: ctx.log, progress: ctx.progress, URL };
        for (const [name, host] of Object.entries(hosts)) {
          try {
            host.constructor("return this")();
            escaped.push(name);
          } catch (error) {
            if (!(error instanceof EvalError)) escaped.push(`${name}: ${error}`);
          }
        }
        return { escaped };
      },
    },
  },
};
