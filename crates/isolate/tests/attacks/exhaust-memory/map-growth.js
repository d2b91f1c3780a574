// attack: Grows a Map, whose table doubles into one huge allocation.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "map growth",
      input: { type: "object" },
      async run() {
        const map = new Map();
        for (let i = 0; ; i++) map.set(i, i);
      },
    },
  },
};
