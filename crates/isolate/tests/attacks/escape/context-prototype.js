// attack: Climbs from the context object to a constructor, and tries to change what the next reader of it sees.
// expect: ok
// result: {"prototype":null,"changed":false,"constructor":"undefined"}

export default {
  tools: {
    attack: {
      description: "context prototype",
      input: { type: "object" },
      async run(input, ctx) {
        let changed = false;
        for (const attempt of [
          () => (ctx.log = () => {}),
          () => delete Object.getPrototypeOf(ctx).signal,
          () => (Object.getPrototypeOf(ctx).progress = () => {}),
          () => Object.setPrototypeOf(Object.getPrototypeOf(ctx), { tenant: "other" }),
          () => Object.setPrototypeOf(ctx, { tenant: "other" }),
          () => Object.defineProperty(ctx, "limits", { value: {} }),
        ]) {
          try {
            attempt();
            changed = true;
          } catch {}
        }
        return { prototype: Object.getPrototypeOf(Object.getPrototypeOf(ctx)), changed, constructor: typeof ctx.constructor };
      },
    },
  },
};
