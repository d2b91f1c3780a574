// attack: Feeds a Set from an endless generator of one value, so that memory never grows and nothing else stops it.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "set of endless iterator",
      input: { type: "object" },
      async run() {
        function* ones() {
          for (;;) yield 1;
        }
        return { size: new Set(ones()).size };
      },
    },
  },
};
