// attack: Throws two errors that are each other's cause.
// expect: tool_error
// message: chicken

export default {
  tools: {
    attack: {
      description: "error cause cycle",
      input: { type: "object" },
      async run() {
        const egg = new Error("egg");
        const chicken = new Error("chicken", { cause: egg });
        egg.cause = chicken;
        throw chicken;
      },
    },
  },
};
