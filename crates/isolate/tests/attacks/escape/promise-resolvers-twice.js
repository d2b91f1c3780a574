// attack: Calls the resolvers of promise combinators again and again, out of turn and from inside each other.
// expect: ok
// result: {"all":[1,2],"any":"AggregateError","settled":2}

export default {
  tools: {
    attack: {
      description: "promise resolvers twice",
      input: { type: "object" },
      async run() {
        class Eager extends Promise {
          then(onFulfilled, onRejected) {
            super.then(onFulfilled, onRejected);
            for (let i = 0; i < 3; i++) queueMicrotask(() => onFulfilled?.(100 + i));
            return super.then(onFulfilled, onRejected);
          }
        }
        const all = await Promise.all([Promise.resolve(1), { then: (resolve) => (resolve(2), resolve(3), resolve(4)) }]);
        const any = await Promise.any([{ then: (_, reject) => (reject(1), reject(2)) }]).catch((error) => error.name);
        const settled = await Promise.allSettled([new Eager((resolve) => resolve(1)), { then: (resolve, reject) => (resolve(1), reject(2)) }]);
        return { all, any, settled: settled.length };
      },
    },
  },
};
