// attack: Reserves gigabytes of address space for a resizable buffer, grows into it and touches every page.
// expect: ok
// result: {"grown":false}
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "resizable buffer",
      input: { type: "object" },
      async run() {
        try {
          const buffer = new ArrayBuffer(8, { maxByteLength: 2 ** 32 });
          buffer.resize(2 ** 30);
          new Uint8Array(buffer).fill(1);
          return { grown: true };
        } catch (error) {
          return { grown: !(error instanceof RangeError) };
        }
      },
    },
  },
};
