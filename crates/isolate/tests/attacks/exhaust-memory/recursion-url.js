// attack: Recurses through the host's own functions, to overflow the stack inside them.
// expect: tool_error
// message: Maximum call stack size exceeded
// limits: cpu_ms=2000

export default {
  tools: {
    attack: {
      description: "recursion url",
      input: { type: "object" },
      async run() {
        let depth = 0;
        const loop = {
          toString() {
            depth++;
            return new URL(loop).href;
          },
        };
        return { href: new URL(loop).href };
      },
    },
  },
};
