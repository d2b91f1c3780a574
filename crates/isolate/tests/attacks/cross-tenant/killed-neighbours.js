// attack: Gets itself killed again and again, to take its zygote or the next call with it.
// expect: cpu_limit
// calls: 5

let kills = 0;

export default {
  tools: {
    attack: {
      description: "killed neighbours",
      input: { type: "object" },
      async run() {
        kills++;
        if (kills > 1) return { survived: kills };
        for (;;);
      },
    },
  },
};
