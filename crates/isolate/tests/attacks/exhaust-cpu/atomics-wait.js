// attack: Blocks the only thread in the kernel, where no interrupt of V8 would reach it.
// expect: tool_error
// message: Atomics.wait

export default {
  tools: {
    attack: {
      description: "atomics wait",
      input: { type: "object" },
      async run() {
        const cell = new Int32Array(new SharedArrayBuffer(4));
        return { result: Atomics.wait(cell, 0, 0) };
      },
    },
  },
};
