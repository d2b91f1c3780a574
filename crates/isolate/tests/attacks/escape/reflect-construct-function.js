// attack: Makes a function through Reflect.construct with another new.target, and through a bound constructor.
// expect: ok
// result: {"refused":3}

export default {
  tools: {
    attack: {
      description: "reflect construct function",
      input: { type: "object" },
      async run() {
        let refused = 0;
        const attempts = [
          () => Reflect.construct(Function, ["return 1"], class {}),
          () => new (Function.bind(null, "return 1"))(),
          () => class extends Function {}.constructor("return 1"),
        ];
        for (const attempt of attempts) {
          try {
            attempt();
          } catch (error) {
            if (error instanceof EvalError) refused++;
          }
        }
        return { refused };
      },
    },
  },
};
