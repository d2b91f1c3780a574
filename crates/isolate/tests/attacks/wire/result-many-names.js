// attack: Returns an object with every kind of key order: integers first, then names, then nothing for symbols.
// expect: ok
// result: {"1":"b","2":"a","z":1,"a":2,"":3}

export default {
  tools: {
    attack: {
      description: "result many names",
      input: { type: "object" },
      async run() {
        return { z: 1, 2: "a", a: 2, 1: "b", "": 3, [Symbol("s")]: 4 };
      },
    },
  },
};
