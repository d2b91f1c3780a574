// attack: Tries to abort its own call, or to look aborted, by events and by overriding the signal.
// expect: ok
// result: {"aborted":false}

export default {
  tools: {
    attack: {
      description: "abort tampering",
      input: { type: "object" },
      async run(input, ctx) {
        const { signal } = ctx;
        const { aborted } = signal;
        for (const attempt of [
          () => signal.dispatchEvent(new Event("abort")),
          () => signal.onabort?.(),
          () => signal.abort(),
          () => Object.defineProperty(signal, "aborted", { value: true }),
          () => Object.setPrototypeOf(signal, null),
          () => Object.defineProperty(AbortSignal.prototype, "aborted", { get: () => true }),
        ]) {
          try {
            attempt();
          } catch {}
        }
        return { aborted };
      },
    },
  },
};
