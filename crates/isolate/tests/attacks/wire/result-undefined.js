// attack: Returns nothing, on which a careless frame would have no body.
// expect: ok
// result: null

export default {
  tools: {
    attack: {
      description: "result undefined",
      input: { type: "object" },
      async run() {
        return undefined;
      },
    },
  },
};
