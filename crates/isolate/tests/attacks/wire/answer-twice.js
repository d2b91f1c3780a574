// attack: Settles its answer twice, both ways, and once more later.
// expect: ok
// result: {"answer":1}
// calls: 2

export default {
  tools: {
    attack: {
      description: "answer twice",
      input: { type: "object" },
      async run() {
        return {
          then(resolve, reject) {
            resolve({ answer: 1 });
            resolve({ answer: 2 });
            reject(new Error("answer 3"));
            setTimeout(() => resolve({ answer: 4 }), 0);
            throw new Error("answer 5");
          },
        };
      },
    },
  },
};
