// attack: Keeps the abort signal and the context of one call and uses them in the next one of the session.
// expect: ok
// result: {"same":false,"aborted":false}
// calls: 3
// boundary: session

let kept;

export default {
  tools: {
    attack: {
      description: "session signal kept",
      input: { type: "object" },
      async run(input, ctx) {
        const same = kept === ctx || kept?.signal === ctx.signal;
        kept?.log("a line for a call that is over");
        kept?.progress(1);
        kept?.signal.dispatchEvent(new Event("abort"));
        kept = ctx;
        return { same, aborted: ctx.signal.aborted };
      },
    },
  },
};
