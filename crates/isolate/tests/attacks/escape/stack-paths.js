// attack: Looks for paths of the host in the stack of an ordinary error.
// expect: ok
// result: {"leak":null}

export default {
  tools: {
    attack: {
      description: "stack paths",
      input: { type: "object" },
      async run() {
        const PATH = /(?:file:|node:|\.rs\b|\/(?:work|home|root|usr|proc|tmp|etc|opt|var|build|src|target|crates)\b)[^\n]*/;
        Error.stackTraceLimit = 1000;
        const deep = (n) => (n === 0 ? new Error("x").stack : deep(n - 1));
        return { leak: PATH.exec(deep(50))?.[0] ?? null };
      },
    },
  },
};
