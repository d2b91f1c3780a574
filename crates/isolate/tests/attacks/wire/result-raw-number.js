// attack: Writes numbers into JSON that no double can hold, and one of ten thousand digits, by JSON.rawJSON.
// expect: ok | tool_error

export default {
  tools: {
    attack: {
      description: "result raw number",
      input: { type: "object" },
      async run() {
        // It is valid JSON. A host that parses it into doubles may refuse it; it must not take it for a broken protocol.
        return { huge: JSON.rawJSON("1e1000"), long: JSON.rawJSON("9".repeat(10_000)), exact: JSON.rawJSON("18446744073709551616") };
      },
    },
  },
};
