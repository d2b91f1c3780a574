// attack: An abort listener never returns; it runs inside the host's event dispatch.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "event listener spins",
      input: { type: "object" },
      async run() {
        const controller = new AbortController();
        controller.signal.addEventListener("abort", () => {
          for (;;);
        });
        controller.abort();
        return { aborted: true };
      },
    },
  },
};
