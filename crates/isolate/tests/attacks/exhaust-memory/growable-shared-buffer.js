// attack: The same with a growable SharedArrayBuffer, which can never shrink.
// expect: ok
// result: {"grown":false}
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "growable shared buffer",
      input: { type: "object" },
      async run() {
        try {
          const buffer = new SharedArrayBuffer(8, { maxByteLength: 2 ** 32 });
          buffer.grow(2 ** 30);
          new Uint8Array(buffer).fill(1);
          return { grown: true };
        } catch (error) {
          return { grown: !(error instanceof RangeError) };
        }
      },
    },
  },
};
