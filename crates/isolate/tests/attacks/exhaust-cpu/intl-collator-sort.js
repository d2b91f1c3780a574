// attack: Sorts by locale rules, each comparison a walk through collation tables.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "intl collator sort",
      input: { type: "object" },
      async run() {
        const names = Array.from({ length: 30_000 }, (_, i) => `ké${(i * 7919) % 30_011}ß`);
        names.sort(new Intl.Collator("sv", { numeric: true }).compare);
        return { first: names[0] };
      },
    },
  },
};
