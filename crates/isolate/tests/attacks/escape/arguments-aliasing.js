// attack: Resizes and replaces an arguments object while native code spreads it.
// expect: ok
// result: {"max":3,"length":7}

export default {
  tools: {
    attack: {
      description: "arguments aliasing",
      input: { type: "object" },
      async run() {
        function spread() {
          const source = arguments;
          source[1] = {
            valueOf() {
              source.length = 1000;
              return 3;
            },
          };
          return Math.max(...source);
        }
        function fixed(a, b) {
          arguments.length = 7;
          return Array.from(arguments, (value) => value ?? b).length;
        }
        return { max: spread(1, 2), length: fixed(1, 2) };
      },
    },
  },
};
