// attack: `run` is a getter that gives another function each time it is read; the one that was checked is the one that runs.
// expect: ok
// result: {"reading":1}
// calls: 2

let readings = 0;

export default {
  tools: {
    attack: {
      description: "changes",
      get run() {
        const reading = ++readings;
        return () => ({ reading });
      },
    },
  },
};
