// attack: Reads the nanoseconds of Temporal, V8's own clock that no wrapper of performance covers.
// expect: ok
// result: {"fine":false}

export default {
  tools: {
    attack: {
      description: "clock temporal",
      input: { type: "object" },
      async run() {
        let fine = false;
        if (typeof Temporal !== "undefined") {
          for (let i = 0; i < 50; i++) if (Temporal.Now.instant().epochNanoseconds % 1_000_000n !== 0n) fine = true;
        }
        return { fine };
      },
    },
  },
};
