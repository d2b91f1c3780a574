// attack: Leaves timers running that would change what the next call sees.
// expect: ok
// result: {"ticks":0}
// calls: 3

let ticks = 0;

export default {
  tools: {
    attack: {
      description: "timers left",
      input: { type: "object" },
      async run() {
        const before = ticks;
        setInterval(() => ticks++, 1);
        await new Promise((resolve) => setTimeout(resolve, 10));
        return { ticks: before };
      },
    },
  },
};
