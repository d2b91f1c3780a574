// attack: Collects stack frames from inside every host callback and asks each for its function and its receiver.
// expect: ok
// result: {"functions":0,"receivers":0}

export default {
  tools: {
    attack: {
      description: "stack frames",
      input: { type: "object" },
      async run() {
        const frames = [];
        const collect = () => {
          const format = Error.prepareStackTrace;
          Error.prepareStackTrace = (_, sites) => frames.push(...sites);
          void new Error().stack;
          Error.prepareStackTrace = format;
          return "x";
        };
        collect();
        new URL({ toString: () => `http://${collect()}/` });
        new URLSearchParams({ a: { toString: collect } });
        queueMicrotask(collect);
        const controller = new AbortController();
        controller.signal.addEventListener("abort", collect);
        controller.abort();
        new ReadableStream({ start: collect, pull: collect }).getReader().read();
        try {
          structuredClone(Object.defineProperty({}, "a", { get: collect, enumerable: true }));
        } catch {}
        await new Promise((resolve) => setTimeout(() => resolve(collect()), 1));
        const count = (method) => frames.filter((frame) => typeof frame[method]?.() === "function").length;
        const receivers = frames.filter((frame) => {
          const receiver = frame.getThis?.();
          return typeof receiver === "object" && receiver !== null && receiver !== globalThis;
        });
        return { functions: count("getFunction"), receivers: receivers.length };
      },
    },
  },
};
