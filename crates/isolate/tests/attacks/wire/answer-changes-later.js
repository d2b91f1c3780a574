// attack: Changes the result after it was given, from a microtask and from a getter that runs while it is written.
// expect: ok
// result: {"first":1,"second":"set by the getter"}

export default {
  tools: {
    attack: {
      description: "answer changes later",
      input: { type: "object" },
      async run() {
        const result = {
          get first() {
            result.second = "set by the getter";
            result.third = "too late to be a key";
            return 1;
          },
          second: 2,
        };
        setTimeout(() => (result.second = "set by a timer"), 0);
        return result;
      },
    },
  },
};
