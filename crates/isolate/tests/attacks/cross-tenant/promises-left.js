// attack: Leaves a promise in the module that this call settles and the next one awaits.
// expect: ok
// result: {"settled":false}
// calls: 3

let open;
const gate = new Promise((resolve) => (open = resolve));

export default {
  tools: {
    attack: {
      description: "promises left",
      input: { type: "object" },
      async run() {
        const settled = await Promise.race([gate, new Promise((resolve) => setTimeout(resolve, 5, false))]);
        open(true);
        return { settled };
      },
    },
  },
};
