// attack: Looks for a clock finer than a millisecond in performance and in events, to time what others do.
// expect: ok
// result: {"fine":[]}

export default {
  tools: {
    attack: {
      description: "clock performance",
      input: { type: "object" },
      async run() {
        const fine = [];
        const check = (name, read) => {
          for (let i = 0; i < 200; i++) if (!Number.isInteger(read())) return fine.push(name);
        };
        check("performance.now", () => performance.now());
        check("timeOrigin", () => performance.timeOrigin ?? 0);
        check("Event.timeStamp", () => new Event("e").timeStamp ?? 0);
        check("Date.now", () => Date.now());
        return { fine };
      },
    },
  },
};
