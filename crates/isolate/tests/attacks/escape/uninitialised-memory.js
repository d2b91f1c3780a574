// attack: Looks for what others left in fresh buffers, after making a good deal of garbage to be given back.
// expect: ok
// result: {"dirty":false}
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "uninitialised memory",
      input: { type: "object" },
      async run() {
        let dirty = false;
        const filled = (bytes) => bytes.indexOf(0) !== -1 && bytes.some((byte) => byte !== 0);
        for (let i = 0; i < 40; i++) new Uint8Array(1 << 20).fill(0xaa);
        for (const size of [1, 63, 64, 65, 4096, 1 << 16, 1 << 20]) {
          for (let i = 0; i < 3; i++) {
            const fresh = [new Uint8Array(size), new Uint8Array(new ArrayBuffer(size, { maxByteLength: size * 2 })), new Uint8Array(new SharedArrayBuffer(size)), new Uint8Array(new ArrayBuffer(1).transfer(size))];
            for (const bytes of fresh) if (filled(bytes) || bytes.indexOf(0xaa) !== -1) dirty = true;
          }
        }
        return { dirty };
      },
    },
  },
};
