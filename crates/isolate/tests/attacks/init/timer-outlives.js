// attack: Leaves a timer behind when its initialisation ends, to run inside every later call.
// expect: ok
// result: {"ticks":0}
// calls: 2

let ticks = 0;
setInterval(() => ticks++, 1);

export default {
  tools: {
    attack: {
      async run() {
        const before = ticks;
        await new Promise((resolve) => setTimeout(resolve, 20));
        return { ticks: ticks - before };
      },
    },
  },
};
