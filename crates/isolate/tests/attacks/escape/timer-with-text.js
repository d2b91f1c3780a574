// attack: Gives setTimeout code as text, which browsers would compile.
// expect: ok
// result: {"ran":false}

export default {
  tools: {
    attack: {
      description: "timer with text",
      input: { type: "object" },
      async run() {
        for (const timer of [setTimeout, setInterval]) {
          try {
            timer("globalThis.ran = true", 0);
          } catch {}
        }
        await new Promise((resolve) => setTimeout(resolve, 10));
        return { ran: globalThis.ran === true };
      },
    },
  },
};
