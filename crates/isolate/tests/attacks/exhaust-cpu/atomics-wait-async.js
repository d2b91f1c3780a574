// attack: Waits for a notification on shared memory that no other thread exists to send.
// expect: time_limit
// limits: time_ms=300

export default {
  tools: {
    attack: {
      description: "atomics wait async",
      input: { type: "object" },
      async run() {
        const cell = new Int32Array(new SharedArrayBuffer(4));
        await Atomics.waitAsync(cell, 0, 0).value;
        return { woke: true };
      },
    },
  },
};
