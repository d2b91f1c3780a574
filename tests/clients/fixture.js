// What the real clients call: one of everything that a client can ask for. Deployed with boundary `server`.
/** By name: how many waits began, and how many of them were given up. */
const waits = {};

export default {
  name: "clients",
  version: "1.0.0",
  tools: {
    double_price: {
      description: "Doubles a price.",
      input: { type: "object", properties: { price: { type: "number" } }, required: ["price"] },
      output: { type: "object", properties: { doublePrice: { type: "number" } }, required: ["doublePrice"] },
      run: ({ price }) => ({ doublePrice: price * 2 }),
    },
    count: {
      description: "Counts slowly and tells how far it is.",
      input: {
        type: "object",
        properties: { to: { type: "integer" }, pause_ms: { type: "integer" } },
        required: ["to", "pause_ms"],
      },
      async run({ to, pause_ms }, ctx) {
        for (let n = 1; n <= to; n++) {
          ctx.progress(n, to, `step ${n}`);
          await new Promise((resolve) => setTimeout(resolve, pause_ms));
        }
        return { counted: to };
      },
    },
    wait: {
      description: "Waits, and remembers under its name when it was given up.",
      input: {
        type: "object",
        properties: { ms: { type: "integer" }, name: { type: "string" } },
        required: ["ms", "name"],
      },
      run({ ms, name }, ctx) {
        const wait = (waits[name] ??= { started: 0, cancelled: 0 });
        wait.started += 1;
        return new Promise((resolve, reject) => {
          const timer = setTimeout(() => resolve({ waited: ms }), ms);
          ctx.signal.addEventListener("abort", () => {
            wait.cancelled += 1;
            clearTimeout(timer);
            reject(ctx.signal.reason);
          });
        });
      },
    },
    waits: {
      description: "What became of the waits of this name.",
      input: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      run: ({ name }) => waits[name] ?? { started: 0, cancelled: 0 },
    },
  },
  resources: {
    "notes://today": { name: "today", mimeType: "text/plain", read: () => "Buy milk." },
    "notes://days/{day}": { name: "day", mimeType: "text/plain", read: ({ variables }) => `Nothing on ${variables.day}.` },
  },
  prompts: {
    greet: {
      description: "Asks for a greeting.",
      arguments: [{ name: "who", required: true }],
      get: ({ who }) => `Greet ${who}.`,
    },
  },
};
