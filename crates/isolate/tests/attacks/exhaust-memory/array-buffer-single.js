// attack: One ArrayBuffer of eight gigabytes.
// expect: memory_limit
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "array buffer single",
      input: { type: "object" },
      async run() {
        return { bytes: new ArrayBuffer(2 ** 33).byteLength };
      },
    },
  },
};
