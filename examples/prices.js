// A server is an ES module whose default export describes it.
const rates = { EUR: 1, USD: 1.08, JPY: 162.4 };

export default {
  name: "prices",
  version: "1.0.0",
  tools: {
    double_price: {
      description: "Doubles a price.",
      input: {
        type: "object",
        properties: { price: { type: "number" } },
        required: ["price"],
      },
      async run(input, ctx) {
        ctx.log("doubling", input.price);
        return { doublePrice: input.price * 2 };
      },
    },
    convert: {
      description: "Converts an amount of euros into another currency.",
      input: {
        type: "object",
        properties: { euros: { type: "number" }, to: { enum: Object.keys(rates) } },
        required: ["euros", "to"],
      },
      async run({ euros, to }) {
        if (!Object.hasOwn(rates, to)) throw new RangeError(`no rate for ${to}`);
        return { amount: new Intl.NumberFormat("en", { style: "currency", currency: to }).format(euros * rates[to]) };
      },
    },
  },
};
