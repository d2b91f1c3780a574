// attack: Empties an array from inside the comparator that sorts it, and drops the memory behind it.
// expect: ok
// result: {"types":"number,number,number"}

export default {
  tools: {
    attack: {
      description: "array shrinks in comparator",
      input: { type: "object" },
      async run() {
        const array = Array.from({ length: 64 }, (_, i) => 64.5 - i);
        let once = true;
        array.sort((a, b) => {
          if (once) {
            once = false;
            array.length = 0;
            array.push(...new Array(1000).fill({}));
            array.length = 0;
          }
          return a - b;
        });
        return { types: array.slice(0, 3).map((value) => typeof value).join() };
      },
    },
  },
};
