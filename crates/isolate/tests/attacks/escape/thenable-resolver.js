// attack: Returns a thenable to get hold of the host's resolve functions, and looks at where they come from.
// expect: ok
// result: {"compiled":false,"resolve":true}

export default {
  tools: {
    attack: {
      description: "thenable resolver",
      input: { type: "object" },
      async run() {
        return {
          then(resolve, reject) {
            let compiled = true;
            try {
              resolve.constructor("return 1")();
            } catch (error) {
              compiled = !(error instanceof EvalError);
            }
            const plain = (f) => Object.getPrototypeOf(f) === Function.prototype;
            resolve({ compiled, resolve: plain(resolve) && plain(reject) });
          },
        };
      },
    },
  },
};
