// attack: Leaves a busy timer behind in its session, to burn CPU on the bill of the calls that follow.
// expect: ok
// result: {"call":{call}}
// calls: 3
// boundary: session
// limits: cpu_ms=500

let call = 0;

export default {
  tools: {
    attack: {
      description: "session timer bill",
      input: { type: "object" },
      async run() {
        setTimeout(() => {
          const start = performance.now();
          while (performance.now() - start < 20);
        }, 0);
        return { call: call++ };
      },
    },
  },
};
