// A server in plain JavaScript, checked by its comment.

/** @type {import("../bulkhead").Server} */
export default {
  tools: {
    double_price: {
      input: { type: "object", properties: { price: { type: "number" } }, required: ["price"] },
      run({ price }, ctx) {
        ctx.log("doubling", price);
        // @ts-expect-error progress is a number
        if (price < 0) ctx.progress("less");
        return { doublePrice: price * 2 };
      },
    },
  },
};
