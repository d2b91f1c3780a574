// attack: Returns an object that contains itself.
// expect: tool_error
// message: circular

export default {
  tools: {
    attack: {
      description: "result cyclic",
      input: { type: "object" },
      async run() {
        const ring = { list: [] };
        ring.list.push({ ring });
        return ring;
      },
    },
  },
};
