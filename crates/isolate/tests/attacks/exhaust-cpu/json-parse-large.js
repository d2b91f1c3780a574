// attack: One JSON.parse of 20 MB, which goes on for long after it is asked to stop.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "json parse large",
      input: { type: "object" },
      async run() {
        const text = `[${'{"a":1,"b":[1,2,3]},'.repeat(1_000_000)}0]`;
        return { length: JSON.parse(text).length };
      },
    },
  },
};
