// attack: Returns a proxy that was revoked: every touch of it throws.
// expect: tool_error
// message: revoked

export default {
  tools: {
    attack: {
      description: "result revoked proxy",
      input: { type: "object" },
      async run() {
        const { proxy, revoke } = Proxy.revocable({}, {});
        setTimeout(revoke, 0);
        await new Promise((resolve) => setTimeout(resolve, 5));
        return { proxy };
      },
    },
  },
};
