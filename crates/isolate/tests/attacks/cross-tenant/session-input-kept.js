// attack: Keeps the input object of one call and looks whether the next call of the session is handed the same one.
// expect: ok
// result: {"same":false,"polluted":false}
// calls: 3
// boundary: session
// input: {"list":[1]}

let kept = {};

export default {
  tools: {
    attack: {
      description: "session input kept",
      input: { type: "object" },
      async run(input) {
        const same = kept === input || kept.list === input.list;
        const polluted = input.list.length !== 1;
        kept = input;
        input.list.push("left behind");
        return { same, polluted };
      },
    },
  },
};
