// attack: Logs objects whose toString, toJSON, getters and traps never return; none of them is run.
// expect: ok
// result: {"logged":true}

export default {
  tools: {
    attack: {
      description: "console argument spins",
      input: { type: "object" },
      async run() {
        const spin = () => {
          for (;;);
        };
        console.log("%s %d %o", { toString: spin, toJSON: spin }, { valueOf: spin }, Object.defineProperty({}, "a", { get: spin, enumerable: true }));
        console.log(new Proxy({}, { ownKeys: spin, get: spin, getPrototypeOf: spin }));
        return { logged: true };
      },
    },
  },
};
