// attack: Searches fresh host objects for internals kept under symbols or plain names instead of private fields.
// expect: ok
// result: {"leaks":[]}

export default {
  tools: {
    attack: {
      description: "internals in symbols",
      input: { type: "object" },
      async run(input, ctx) {
        const leaks = [];
        const objects = { url: new URL("http://h/"), signal: ctx.signal, event: new Event("e"), decoder: new TextDecoder(), headers: new Headers(), stream: new ReadableStream(), blob: new Blob(["b"]) };
        for (const [name, object] of Object.entries(objects)) {
          for (const key of Reflect.ownKeys(object)) {
            const value = Reflect.getOwnPropertyDescriptor(object, key).value;
            if (typeof value === "function") leaks.push(`${name}.${String(key)}`);
          }
        }
        return { leaks };
      },
    },
  },
};
