// attack: Reads and writes outside a WebAssembly memory; the guard pages are the process's own.
// expect: tool_error
// message: memory access out of bounds
// jit: true

export default {
  tools: {
    attack: {
      description: "jit wasm out of bounds",
      input: { type: "object" },
      async run() {
        // (module (memory 1) (func (export "f") (param i32) (result i32) (i32.load offset=0xfffffff0 (local.get 0))))
        const code = new Uint8Array([
          0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 5, 3, 1, 0, 1, 7, 5, 1, 1, 102, 0, 0, 10, 13, 1, 11,
          0, 32, 0, 40, 2, 240, 255, 255, 255, 15, 11,
        ]);
        return { value: new WebAssembly.Instance(new WebAssembly.Module(code)).exports.f(-1) };
      },
    },
  },
};
