// attack: A JSON reviver swaps the array that is being walked for a proxy and for a typed array.
// expect: ok
// result: {"kept":true}

export default {
  tools: {
    attack: {
      description: "json reviver swaps holder",
      input: { type: "object" },
      async run() {
        let traps = 0;
        const value = JSON.parse("[1,2,[3,4,5]]", function (key, item) {
          if (key === "0" && Array.isArray(this) && this.length === 3 && Array.isArray(this[2])) {
            this[2] = new Proxy([1.5, 2.5], {
              get(target, name) {
                traps++;
                if (name === "length") return 100;
                return target[name];
              },
              deleteProperty: () => true,
              defineProperty: () => true,
            });
            this[1] = new Uint8Array(4);
          }
          return item;
        });
        return { kept: Array.isArray(value) && value.length === 3 && traps > 0 };
      },
    },
  },
};
