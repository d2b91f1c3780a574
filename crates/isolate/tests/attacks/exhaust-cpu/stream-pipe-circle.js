// attack: Pipes a transform stream's readable end into its own writable end and pushes one chunk in.
// expect: cpu_limit | time_limit
// limits: time_ms=2000

export default {
  tools: {
    attack: {
      description: "stream pipe circle",
      input: { type: "object" },
      async run() {
        // Whether the ring spins or stalls on its own back pressure is up to the streams standard; neither may last.
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
