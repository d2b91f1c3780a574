// attack: Trains optimised code on one shape of array and then feeds it another, with a getter that changes it midway.
// expect: ok
// result: {"intact":true}
// jit: true
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "jit type confusion",
      input: { type: "object" },
      async run() {
        const read = (array, index) => array[index] + array[0];
        for (let i = 0; i < 20_000; i++) read([1.1, 2.2, 3.3], i % 3);
        const confused = [1.1, 2.2, 3.3];
        let evil = 0;
        const index = {
          valueOf() {
            evil++;
            confused.length = 1;
            confused[0] = { marker: 0x41414141 };
            return 2;
          },
        };
        const value = read(confused, index);
        return { intact: evil <= 1 && (typeof value === "string" || Number.isNaN(value) || typeof value === "number") };
      },
    },
  },
};
