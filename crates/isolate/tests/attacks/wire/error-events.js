// attack: Listens for errors on the global object and throws again from the listener.
// expect: ok
// result: {"answered":true}

export default {
  tools: {
    attack: {
      description: "error events",
      input: { type: "object" },
      async run() {
        const again = () => {
          throw new Error("thrown by the listener");
        };
        globalThis.onerror = again;
        globalThis.onunhandledrejection = again;
        globalThis.addEventListener?.("error", again);
        globalThis.addEventListener?.("unhandledrejection", again);
        globalThis.reportError?.(new Error("reported"));
        Promise.reject(new Error("unhandled"));
        setTimeout(again, 0);
        await new Promise((resolve) => setTimeout(resolve, 10));
        return { answered: true };
      },
    },
  },
};
