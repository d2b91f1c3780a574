// attack: Writes into buffers of every kind that were made before the fork, shared ones too.
// expect: ok
// result: {"dirty":0}
// calls: 3

const buffers = [
  new Uint8Array(4096),
  new Uint8Array(new SharedArrayBuffer(4096)),
  new Uint8Array(new ArrayBuffer(4096, { maxByteLength: 1 << 20 })),
  new Uint8Array(new SharedArrayBuffer(4096, { maxByteLength: 1 << 20 })),
  new Uint8Array(32),
];

export default {
  tools: {
    attack: {
      description: "buffers",
      input: { type: "object" },
      async run() {
        let dirty = 0;
        for (const bytes of buffers) {
          if (bytes.some((byte) => byte !== 0)) dirty++;
          bytes.fill(0xaa);
          Atomics.notify(new Int32Array(buffers[1].buffer), 0);
        }
        return { dirty };
      },
    },
  },
};
