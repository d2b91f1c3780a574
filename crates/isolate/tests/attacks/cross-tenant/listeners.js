// attack: Leaves listeners on the global object, on the module's signal and for unhandled rejections.
// expect: ok
// result: {"heard":0}
// calls: 3

let heard = 0;
const target = new EventTarget();

export default {
  tools: {
    attack: {
      description: "listeners",
      input: { type: "object" },
      async run() {
        target.dispatchEvent(new Event("call"));
        const before = heard;
        target.addEventListener("call", () => heard++);
        globalThis.addEventListener?.("error", () => heard++);
        globalThis.addEventListener?.("unhandledrejection", () => heard++);
        Promise.reject(new Error("unhandled on purpose"));
        await new Promise((resolve) => setTimeout(resolve, 1));
        return { heard: before };
      },
    },
  },
};
