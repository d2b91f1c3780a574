// attack: The start function of a WebAssembly module never returns, so that making an instance never does.
// expect: init_limit
// jit: true

// (module (func $f (loop (br 0))) (start $f))
const code = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 8, 1, 0, 10, 9, 1, 7, 0, 3, 64, 12, 0, 11, 11,
]);
new WebAssembly.Instance(new WebAssembly.Module(code));

export default { tools: { attack: { run: () => 1 } } };
