// attack: Makes host functions fail in every way and looks for paths of the host in messages, stacks and own properties.
// expect: ok
// result: {"leaks":[]}
// limits: cpu_ms=1000

export default {
  tools: {
    attack: {
      description: "host error paths",
      input: { type: "object" },
      async run(input, ctx) {
        const PATH = /(?:file:|node:|\.rs\b|\/(?:work|home|root|usr|proc|tmp|etc|opt|var|build|target|crates)\b)[^\n]*/;
        const failures = [
          () => new URL("::"),
          () => structuredClone(() => {}),
          () => atob("*"),
          () => btoa("\u4e2d"),
          () => new TextDecoder("no-such-encoding"),
          () => new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([255])),
          () => new Headers({ "bad name": "x" }),
          () => crypto.getRandomValues(new Float32Array(1)),
          () => setTimeout("text"),
          () => new ReadableStream({ type: "bytes", autoAllocateChunkSize: 0 }),
          () => new AbortSignal(),
          () => new Intl.NumberFormat("xx-invalid-locale-"),
          () => new RegExp("("),
          () => ctx.progress("x"),
          () => fetch("http://host.invalid/"),
          () => fetch("not a url"),
          () => import("node:fs"),
          () => WebAssembly.compile(new Uint8Array(4)),
        ];
        const leaks = [];
        for (const fail of failures) {
          try {
            await fail();
            leaks.push(`no error: ${fail}`);
          } catch (error) {
            const text = [error.message, error.stack, error.fileName, error.cause?.stack, error.cause?.message].join("\n");
            const named = text.replaceAll("node:fs", "").replaceAll("`node:`", "");
            const leak = PATH.exec(named);
            if (leak) leaks.push(leak[0]);
          }
        }
        return { leaks };
      },
    },
  },
};
