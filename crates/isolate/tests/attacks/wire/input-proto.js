// attack: Arguments with members named like the prototype's must not become the prototype.
// expect: ok
// result: {"own":true,"polluted":false,"keys":3}
// input: {"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"a\u0000b":1}

export default {
  tools: {
    attack: {
      description: "input proto",
      input: { type: "object" },
      async run(input) {
        return { own: Object.hasOwn(input, "__proto__"), polluted: "polluted" in {} || input.polluted === true, keys: Object.keys(input).length };
      },
    },
  },
};
