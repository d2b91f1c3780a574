// attack: Looks for a second thread that could count time in shared memory.
// expect: ok
// result: {"threads":[]}

export default {
  tools: {
    attack: {
      description: "clock shared memory",
      input: { type: "object" },
      async run() {
        const threads = ["Worker", "SharedWorker", "AudioWorklet", "PaintWorklet", "OffscreenCanvas", "MessageChannel"].filter((name) => typeof globalThis[name] !== "undefined" && name !== "MessageChannel");
        const cell = new Int32Array(new SharedArrayBuffer(4));
        if (Atomics.notify(cell, 0) !== 0) threads.push("somebody waits");
        return { threads };
      },
    },
  },
};
