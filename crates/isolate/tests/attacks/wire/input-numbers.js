// attack: Arguments beyond the exact integers: they are doubles here, and nothing else is touched.
// expect: ok
// result: {"big":9007199254740992,"long":12345678901234567000,"small":1e-7}
// input: {"big":9007199254740993,"long":12345678901234567890,"small":0.0000001}

export default {
  tools: {
    attack: {
      description: "input numbers",
      input: { type: "object" },
      async run(input) {
        return input;
      },
    },
  },
};
