// attack: Replaces builtins with spies while host functions run, to catch the host's own values passing through.
// expect: ok
// result: {"caught":[]}
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "replaced builtins see host",
      input: { type: "object" },
      async run(input, ctx) {
        const caught = new Set();
        const restore = [];
        const SECRET = /^(op_|hostCall|native|embedder|done|fail|setAsyncContext)/;
        const look = (value) => {
          if (typeof value === "function" && SECRET.test(value.name)) caught.add(value.name);
          if (typeof value === "object" && value !== null && ("hostCall" in value || "setAsyncContext" in value)) caught.add("the host's functions");
        };
        const { apply } = Reflect;
        for (const [holder, keys] of [
          [Array.prototype, ["push", "map", "join", "slice", "includes", "forEach"]],
          [Function.prototype, ["call", "apply", "bind"]],
          [Map.prototype, ["get", "set", "has"]],
          [WeakMap.prototype, ["get", "set"]],
          [Promise.prototype, ["then"]],
          [Object, ["freeze", "assign", "keys"]],
          [String.prototype, ["toLowerCase", "replace", "split"]],
        ]) {
          for (const key of keys) {
            const original = holder[key];
            restore.push(() => (holder[key] = original));
            holder[key] = function (...args) {
              look(this);
              for (let i = 0; i < args.length; i++) look(args[i]);
              return apply(original, this, args);
            };
          }
        }
        console.log("a", { b: 1 });
        ctx.log("a", { b: 1 });
        const pending = [fetch("http://h/").catch(() => {}), new Promise((resolve) => setTimeout(resolve, 1))];
        new URL("http://h/?a=1").searchParams.append("b", "2");
        new Headers({ a: "b" }).get("a");
        structuredClone({ a: 1 });
        for (const undo of restore) undo();
        for (const each of pending) await each;
        return { caught: [...caught] };
      },
    },
  },
};
