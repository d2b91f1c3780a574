// attack: Throws an error whose own stack and name are megabytes of text with forged lines in it.
// expect: tool_error
// limits: cpu_ms=5000

export default {
  tools: {
    attack: {
      description: "error stack huge",
      input: { type: "object" },
      async run() {
        const error = new Error("x");
        error.name = "N".repeat(5_000_000);
        error.stack = "Error: x\n    at host (/etc/passwd:1:1)\n".repeat(100_000);
        throw error;
      },
    },
  },
};
