// attack: One ArrayBuffer of eight gigabytes.
// expect: tool_error
// message: Array buffer allocation failed
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
