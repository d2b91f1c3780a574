// attack: Enqueues into a stream that nobody reads.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "stream queue",
      input: { type: "object" },
      async run() {
        const stream = new ReadableStream({
          start(controller) {
            for (let i = 0; ; i++) controller.enqueue({ i, payload: `chunk ${i}` });
          },
        });
        return { locked: stream.locked };
      },
    },
  },
};
