// attack: Draws before the fork what a naive child would draw again, and looks for any of it in the calls.
// expect: ok
// result: {"repeated":false}
// calls: 3

const before = new Set();
for (let i = 0; i < 500; i++) before.add(Math.random());
const uuids = new Set(Array.from({ length: 50 }, () => crypto.randomUUID()));
const bytes = String(crypto.getRandomValues(new Uint8Array(32)));

export default {
  tools: {
    attack: {
      description: "random inherited",
      input: { type: "object" },
      async run() {
        let repeated = bytes === String(crypto.getRandomValues(new Uint8Array(32)));
        for (let i = 0; i < 500; i++) if (before.has(Math.random())) repeated = true;
        for (let i = 0; i < 50; i++) if (uuids.has(crypto.randomUUID())) repeated = true;
        return { repeated };
      },
    },
  },
};
