// attack: Keeps formatters of the internationalisation library, tens of kilobytes each outside the heap.
// expect: memory_limit
// limits: memory_mb=64 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "intl objects",
      input: { type: "object" },
      async run() {
        const keep = [];
        for (;;) keep.push(new Intl.DateTimeFormat("en", { dateStyle: "full", timeStyle: "full", timeZone: "Europe/Berlin" }));
      },
    },
  },
};
