// attack: A SharedArrayBuffer, in case memory meant for threads is counted elsewhere.
// expect: memory_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "shared array buffer",
      input: { type: "object" },
      async run() {
        const shared = new SharedArrayBuffer(2 ** 30);
        return { bytes: new Uint8Array(shared).fill(1).length };
      },
    },
  },
};
