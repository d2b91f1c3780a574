// attack: Throws an object without a prototype, and so without toString.
// expect: tool_error

export default {
  tools: {
    attack: {
      description: "throws prototype less",
      input: { type: "object" },
      async run() {
        throw Object.create(null, { message: { value: "no prototype", enumerable: true } });
      },
    },
  },
};
