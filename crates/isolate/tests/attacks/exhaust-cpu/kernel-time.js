// attack: Burns the kernel's CPU time instead of its own by asking for random bytes without end.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "kernel time",
      input: { type: "object" },
      async run() {
        const bytes = new Uint8Array(65536);
        for (;;) crypto.getRandomValues(bytes);
      },
    },
  },
};
