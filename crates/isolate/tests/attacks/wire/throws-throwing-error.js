// attack: Throws an error all of whose properties throw when they are read.
// expect: tool_error

export default {
  tools: {
    attack: {
      description: "throws throwing error",
      input: { type: "object" },
      async run() {
        const error = new Error("x");
        for (const key of ["name", "message", "stack", "cause", "toString", "toJSON", "constructor", Symbol.toPrimitive, Symbol.toStringTag]) {
          Object.defineProperty(error, key, {
            get() {
              throw new Error(`thrown by ${String(key)}`);
            },
          });
        }
        throw error;
      },
    },
  },
};
