// The tool that the peers offer, as Bulkhead runs it.
export default {
  name: "prices",
  version: "1.0.0",
  tools: {
    double_price: {
      description: "Doubles a price.",
      input: { type: "object", properties: { price: { type: "number" } }, required: ["price"] },
      output: { type: "object", properties: { doublePrice: { type: "number" } }, required: ["doublePrice"] },
      run: ({ price }) => ({ doublePrice: price * 2 }),
    },
  },
};
