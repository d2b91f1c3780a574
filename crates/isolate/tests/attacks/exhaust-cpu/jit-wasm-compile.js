// attack: Compiles a WebAssembly module of a million functions.
// expect: cpu_limit
// jit: true
// limits: memory_mb=256

const leb = (n) => {
  const bytes = [];
  do {
    bytes.push((n & 127) | (n > 127 ? 128 : 0));
    n >>>= 7;
  } while (n);
  return bytes;
};

export default {
  tools: {
    attack: {
      description: "jit wasm compile",
      input: { type: "object" },
      async run() {
        const count = 900_000;
        const size = leb(count);
        const functions = 1 + 5 + size.length + count;
        const module = new Uint8Array(8 + 6 + functions + 1 + 5 + size.length + 3 * count);
        module.set([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0]);
        const padded = (n) => [0, 7, 14, 21, 28].map((shift) => ((n >>> shift) & 127) | (shift < 28 ? 128 : 0));
        let at = 14;
        module.set([3, ...padded(size.length + count), ...size], at);
        at += functions;
        module.set([10, ...padded(size.length + 3 * count), ...size, 2, 0, 11], at);
        at += 6 + size.length;
        for (let done = 3; done < 3 * count; done *= 2) module.copyWithin(at + done, at, at + Math.min(done, 3 * count - done));
        for (;;) new WebAssembly.Module(module);
      },
    },
  },
};
