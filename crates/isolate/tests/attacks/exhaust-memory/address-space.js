// attack: Reserves address space a gigabyte at a time, a thousand times over, without ever using it.
// expect: ok | memory_limit
// result: {"bounded":true}
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "address space",
      input: { type: "object" },
      async run() {
        // The reservations run into the limit on address space; V8 may then lack room for its own next page.
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
