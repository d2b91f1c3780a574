// attack: Throws a proxy that was revoked: whoever looks at it throws in turn.
// expect: tool_error

export default {
  tools: {
    attack: {
      description: "throws revoked proxy",
      input: { type: "object" },
      async run() {
        const { proxy, revoke } = Proxy.revocable(new Error("x"), {});
        revoke();
        throw proxy;
      },
    },
  },
};
