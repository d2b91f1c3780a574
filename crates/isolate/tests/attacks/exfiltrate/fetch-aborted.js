// attack: Aborts requests before, while and after they are made, to confuse who counts and who answers them.
// expect: ok
// result: {"rejected":3}

export default {
  tools: {
    attack: {
      description: "fetch aborted",
      input: { type: "object" },
      async run() {
        let rejected = 0;
        const attempt = (signal) => fetch("https://evil.example/", { signal }).catch(() => rejected++);
        await attempt(AbortSignal.abort());
        const during = new AbortController();
        const pending = attempt(during.signal);
        during.abort(new Error("changed my mind"));
        await pending;
        const after = new AbortController();
        await attempt(after.signal);
        after.abort();
        return { rejected };
      },
    },
  },
};
