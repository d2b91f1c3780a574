// attack: Gives every object a shape of its own, so that the metadata outweighs the data.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "hidden classes",
      input: { type: "object" },
      async run() {
        const keep = [];
        for (let i = 0; ; i++) {
          class Shape {}
          Shape.prototype[`m${i}`] = 1;
          const object = new Shape();
          object[`f${i}`] = Shape;
          keep.push(object);
        }
      },
    },
  },
};
