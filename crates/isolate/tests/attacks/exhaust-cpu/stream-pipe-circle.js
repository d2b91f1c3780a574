// attack: Pipes a transform stream's readable end into its own writable end and pushes one chunk in.
// expect: cpu_limit

export default {
  tools: {
    attack: {
      description: "stream pipe circle",
      input: { type: "object" },
      async run() {
        const ring = new TransformStream(
          {
            transform(chunk, controller) {
              controller.enqueue(chunk);
            },
          },
          { highWaterMark: 4 },
          { highWaterMark: 4 },
        );
        const writer = ring.writable.getWriter();
        writer.write("chunk");
        writer.releaseLock();
        await ring.readable.pipeTo(ring.writable);
      },
    },
  },
};
