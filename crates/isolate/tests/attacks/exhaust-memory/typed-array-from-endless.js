// attack: Uint8Array.from collects an endless iterator into a list before it makes the array.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "typed array from endless",
      input: { type: "object" },
      async run() {
        function* endless() {
          for (let i = 0; ; i++) yield i;
        }
        return { length: Uint8Array.from(endless()).length };
      },
    },
  },
};
