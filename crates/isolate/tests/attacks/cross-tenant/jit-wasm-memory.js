// attack: Writes into a WebAssembly memory and global that were made before the fork, shared memory too.
// expect: ok
// result: {"dirty":0}
// calls: 3
// jit: true

const memories = [new WebAssembly.Memory({ initial: 1 }), new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true })];
const global = new WebAssembly.Global({ value: "i32", mutable: true }, 0);

export default {
  tools: {
    attack: {
      description: "jit wasm memory",
      input: { type: "object" },
      async run() {
        let dirty = global.value;
        global.value = 1;
        for (const memory of memories) {
          const bytes = new Uint8Array(memory.buffer);
          dirty += bytes[0] + bytes[65_535];
          bytes[0] = bytes[65_535] = 1;
        }
        return { dirty };
      },
    },
  },
};
