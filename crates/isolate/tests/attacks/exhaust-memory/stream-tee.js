// attack: Tees a stream and reads only one branch: the other must remember everything.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "stream tee",
      input: { type: "object" },
      async run() {
        const [fast] = new ReadableStream({
          pull(controller) {
            controller.enqueue(new Array(1024).fill(1.5));
          },
        }).tee();
        const reader = fast.getReader();
        for (;;) await reader.read();
      },
    },
  },
};
