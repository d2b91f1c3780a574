// attack: Puts accessors on Object.prototype for every name a host might set, to catch its objects as it works.
// expect: ok
// result: {"caught":0}
// calls: 2

let caught = 0;
const names = [
  "native", "embedder", "hostCall", "host", "fd", "id", "call", "calls", "tenant", "server", "secret", "secrets", "token",
  "permit", "limits", "egress", "url", "signal", "aborts", "run", "handler", "tools", "resources", "prompts", "result",
  "error", "code", "message", "level", "meta", "then", "toJSON",
];
for (const name of names) {
  Object.defineProperty(Object.prototype, name, {
    configurable: true,
    get() {
      return undefined;
    },
    set(value) {
      // What the tool itself sets is its own business; a function or an object of the host's is a catch.
      if (typeof value === "function" || (typeof value === "object" && value !== null)) caught++;
      Object.defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
    },
  });
}

export default {
  tools: Object.defineProperty({}, "attack", {
    enumerable: true,
    value: Object.defineProperty({}, "run", {
      value: async () => {
        console.log("a line", [1, { two: 2 }]);
        await new Promise((resolve) => setTimeout(resolve, 1));
        for (const name of names) delete Object.prototype[name];
        return { caught };
      },
    }),
  }),
};
