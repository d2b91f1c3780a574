// attack: Reserves address space a gigabyte at a time, a thousand times over, without ever using it.
// expect: memory_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "address space",
      input: { type: "object" },
      async run() {
        const keep = [];
        try {
          for (let i = 0; i < 1000; i++) keep.push(new ArrayBuffer(8, { maxByteLength: 2 ** 30 }));
        } catch (error) {
          if (!(error instanceof RangeError)) throw error;
        }
        return { bounded: keep.length < 1000 };
      },
    },
  },
};
