// attack: Throws an Error whose message is an object with a Symbol.toPrimitive that never returns; V8 runs it when the stack is read.
// expect: tool_error

export default {
  tools: {
    attack: {
      description: "thrown to primitive spins",
      input: { type: "object" },
      async run() {
        const error = new Error("x");
        error.message = {
          [Symbol.toPrimitive]() {
            for (;;);
          },
        };
        throw error;
      },
    },
  },
};
