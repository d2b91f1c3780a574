// attack: Freezes every intrinsic and the global object while it initialises, so that the host cannot set anything up.
// expect: ok
// result: {"ran":true}
// calls: 2
// limits: init_cpu_ms=5000

for (const key of Reflect.ownKeys(globalThis)) {
  const value = Reflect.getOwnPropertyDescriptor(globalThis, key)?.value;
  if (typeof value === "function" && value.prototype) Object.freeze(value.prototype);
  if (typeof value === "function" || (typeof value === "object" && value !== null && value !== globalThis)) Object.freeze(value);
}
try {
  Object.preventExtensions(globalThis);
} catch {}

export default { tools: { attack: { description: "d", run: () => ({ ran: true }) } } };
