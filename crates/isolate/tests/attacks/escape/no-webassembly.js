// attack: Asks for WebAssembly, which would bring a compiler and executable memory with it.
// expect: ok
// result: {"wasm":"undefined"}

return { wasm: typeof WebAssembly };
