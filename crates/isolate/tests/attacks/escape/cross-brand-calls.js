// attack: Calls every method and getter of every host class on instances of every other class and on plain objects.
// expect: ok
// result: {"survived":true}
// limits: cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "cross brand calls",
      input: { type: "object" },
      async run() {
        const make = {
          URL: () => new URL("http://h/"),
          URLSearchParams: () => new URLSearchParams("a=1"),
          Headers: () => new Headers(),
          AbortController: () => new AbortController(),
          AbortSignal: () => AbortSignal.abort(),
          Event: () => new Event("e"),
          EventTarget: () => new EventTarget(),
          TextEncoder: () => new TextEncoder(),
          TextDecoder: () => new TextDecoder(),
          ReadableStream: () => new ReadableStream(),
          WritableStream: () => new WritableStream(),
          TransformStream: () => new TransformStream(),
          Blob: () => new Blob(["b"]),
          FormData: () => new FormData(),
          Request: () => new Request("http://h/"),
          Response: () => new Response("r"),
          DOMException: () => new DOMException("d"),
          Crypto: () => crypto,
        };
        const receivers = [undefined, null, 0, "s", Symbol("s"), {}, [], () => {}, globalThis, new Proxy({}, {}), new Uint8Array(8)];
        for (const name of Object.keys(make)) {
          if (typeof globalThis[name] !== "function") continue;
          receivers.push(make[name](), Object.create(globalThis[name].prototype), new Proxy(make[name](), {}));
        }
        for (const name of Object.keys(make)) {
          const prototype = globalThis[name]?.prototype;
          if (prototype === undefined) continue;
          for (const key of Reflect.ownKeys(prototype)) {
            const property = Reflect.getOwnPropertyDescriptor(prototype, key);
            for (const f of [property.value, property.get, property.set]) {
              if (typeof f !== "function" || key === "constructor") continue;
              for (const receiver of receivers) {
                try {
                  const result = Reflect.apply(f, receiver, [receiver, receiver]);
                  if (result instanceof Promise) result.catch(() => {});
                } catch {}
              }
            }
          }
        }
        return { survived: true };
      },
    },
  },
};
