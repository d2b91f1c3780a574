// attack: A species constructor hands native methods an array that is smaller than they were promised.
// expect: ok
// result: {"errors":["TypeError"],"length":4}

export default {
  tools: {
    attack: {
      description: "species shrinks",
      input: { type: "object" },
      async run() {
        const errors = [];
        class Small extends Uint8Array {
          static get [Symbol.species]() {
            return class {
              constructor() {
                return new Uint8Array(1);
              }
            };
          }
        }
        try {
          new Small(64).slice(0, 32);
        } catch (error) {
          errors.push(error.name);
        }
        const mapped = Array.prototype.map.call(
          Object.defineProperty([1, 2, 3, 4], "constructor", { value: { [Symbol.species]: function () { return []; } } }),
          (value, index, source) => {
            source.length = index + 1 < 4 ? 4 : source.length;
            return value;
          },
        );
        return { errors, length: mapped.length };
      },
    },
  },
};
