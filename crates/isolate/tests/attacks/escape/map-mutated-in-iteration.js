// attack: Empties and refills a Map while native code walks it, so that its table is replaced underneath.
// expect: ok
// result: {"visited":3,"size":1000}

export default {
  tools: {
    attack: {
      description: "map mutated in iteration",
      input: { type: "object" },
      async run() {
        const map = new Map([["a", 1], ["b", 2]]);
        let visited = 0;
        map.forEach((_, key) => {
          visited++;
          if (key === "a") {
            map.clear();
            for (let i = 0; i < 100_0; i++) map.set(i, i);
            for (let i = 2; i < 1000; i++) map.delete(i);
          }
        });
        for (let i = map.size; i < 1000; i++) map.set(i, i);
        return { visited, size: map.size };
      },
    },
  },
};
