// attack: Writes numbers into JSON that no double can hold, and one of ten thousand digits, by JSON.rawJSON.
// expect: ok

export default {
  tools: {
    attack: {
      description: "result raw number",
      input: { type: "object" },
      async run() {
        // It is valid JSON, and the host carries it as text.
        return { huge: JSON.rawJSON("1e1000"), long: JSON.rawJSON("9".repeat(10_000)), exact: JSON.rawJSON("18446744073709551616") };
      },
    },
  },
};
