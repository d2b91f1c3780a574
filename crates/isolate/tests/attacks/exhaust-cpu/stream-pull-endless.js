// attack: A readable stream produces chunks for as long as it is read, and it is read for ever.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "stream pull endless",
      input: { type: "object" },
      async run() {
        const endless = new ReadableStream({
          pull(controller) {
            controller.enqueue("chunk");
          },
        });
        const reader = endless.getReader();
        for (;;) await reader.read();
      },
    },
  },
};
