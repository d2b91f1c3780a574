// What is there, what is not, and how it looks.
const classes = [
  "AbortController", "AbortSignal", "Blob", "ByteLengthQueuingStrategy", "CompressionStream", "CountQueuingStrategy", "Crypto",
  "CryptoKey", "CustomEvent", "DOMException", "DecompressionStream", "ErrorEvent", "Event", "EventTarget", "File", "FormData",
  "Headers", "MessageChannel", "MessageEvent", "MessagePort", "Performance", "ReadableStream", "Request", "Response",
  "SubtleCrypto", "TextDecoder", "TextDecoderStream", "TextEncoder", "TextEncoderStream", "TransformStream", "URL",
  "URLSearchParams", "WritableStream",
];
const functions = [
  "atob", "btoa", "clearInterval", "clearTimeout", "fetch", "queueMicrotask", "reportError", "setInterval", "setTimeout",
  "structuredClone", "addEventListener", "removeEventListener", "dispatchEvent",
];
const absent = ["process", "require", "Buffer", "Deno", "Bun", "global", "module", "__bulkhead", "__dirname", "XMLHttpRequest", "WebSocket"];

for (const name of classes) {
  test(() => {
    const descriptor = Object.getOwnPropertyDescriptor(globalThis, name);
    assert_equals(typeof descriptor.value, "function");
    assert_equals(descriptor.value.name, name);
    assert_false(descriptor.enumerable);
    assert_equals(descriptor.value.prototype[Symbol.toStringTag], name);
    assert_throws_js(TypeError, () => descriptor.value(), "a class is not called without new");
  }, `class ${name}`);
}
for (const name of functions) {
  test(() => {
    assert_equals(typeof globalThis[name], "function");
    assert_throws_js(TypeError, () => new globalThis[name](), "not a constructor");
  }, `function ${name}`);
}
for (const name of absent) test(() => assert_false(name in globalThis), `no ${name}`);

test(() => {
  assert_equals(typeof eval, "undefined");
  assert_false("eval" in globalThis);
}, "no eval");

test(() => {
  assert_equals(self, globalThis);
  assert_equals(navigator.userAgent, "Bulkhead");
  assert_equals(typeof performance.now(), "number");
  assert_equals(typeof crypto.subtle.digest, "function");
  assert_equals(String(console), "[object console]");
}, "attributes");

test(() => {
  for (let i = 0; i < 200; i++) {
    const now = performance.now();
    assert_equals(now, Math.floor(now), "whole milliseconds");
    assert_true(now >= 0);
  }
  assert_equals(performance.timeOrigin, Math.floor(performance.timeOrigin));
  assert_true(Math.abs(Date.now() - performance.timeOrigin - performance.now()) < 1000);
}, "performance is coarse and begins with the process");
