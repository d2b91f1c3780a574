// attack: Returns builtin objects whose inside JSON does not show.
// expect: ok
// result: {"map":{},"set":{},"date":"1970-01-01T00:00:00.000Z","bytes":{"0":1,"1":2},"error":{},"boxed":[1,"s",true],"regexp":{},"promise":{}}

export default {
  tools: {
    attack: {
      description: "result builtin objects",
      input: { type: "object" },
      async run() {
        return {
          map: new Map([[1, 2]]),
          set: new Set([1]),
          date: new Date(0),
          bytes: new Uint8Array([1, 2]),
          error: new Error("hidden"),
          boxed: [Object(1), Object("s"), Object(true)],
          regexp: /x/g,
          promise: Promise.resolve(1),
        };
      },
    },
  },
};
