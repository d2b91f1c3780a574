// attack: for-await over an async iterator that is never done.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "async iterator endless",
      input: { type: "object" },
      async run() {
        const endless = { [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false, value: 0 }) }) };
        let n = 0;
        for await (const value of endless) n += value;
        return { n };
      },
    },
  },
};
