// Memory that shrank or went away, and values that are deep or large: an error at most, never the end of the process.
const shrunk = (Type) => {
  const buffer = new ArrayBuffer(64, { maxByteLength: 64 });
  const view = new Type(buffer, 32, 8 / (Type.BYTES_PER_ELEMENT ?? 1));
  buffer.resize(8);
  return view;
};
const detached = () => {
  const view = new Uint8Array(8);
  structuredClone(view.buffer, { transfer: [view.buffer] });
  return view;
};
/** Runs it; whatever it throws is fine as long as it is an error. */
const survives = async (f) => {
  try {
    await f();
  } catch (error) {
    assert_true(error instanceof Error, String(error));
  }
};
const makers = {
  "a shrunk Uint8Array": () => shrunk(Uint8Array),
  "a shrunk Uint32Array": () => shrunk(Uint32Array),
  "a shrunk DataView": () => shrunk(DataView),
  "a detached Uint8Array": detached,
  "a detached ArrayBuffer": () => detached().buffer,
  "a growable SharedArrayBuffer": () => new SharedArrayBuffer(8, { maxByteLength: 16 }),
  "a view on shared memory": () => new Uint8Array(new SharedArrayBuffer(8)),
};
for (const [name, make] of Object.entries(makers)) {
  promise_test(async () => {
    await survives(() => crypto.getRandomValues(make()));
    await survives(() => new TextEncoder().encodeInto("text", make()));
    await survives(() => new TextDecoder().decode(make()));
    await survives(() => new TextDecoder("shift_jis").decode(make(), { stream: true }));
    await survives(() => crypto.subtle.digest("SHA-256", make()));
    await survives(() => crypto.subtle.importKey("raw", make(), { name: "HMAC", hash: "SHA-1" }, false, ["sign"]));
    await survives(() => new Blob([make()]).text());
    await survives(() => new Response(make()).arrayBuffer());
    await survives(() => structuredClone(make()));
    await survives(() => bulkhead.inspect(make()));
    await survives(() => new Response(new Blob([new Uint8Array(4)]).stream().pipeThrough(new TransformStream({ transform: (chunk, controller) => controller.enqueue(make()) }))).text());
    await survives(() => {
      const { readable, writable } = new CompressionStream("gzip");
      const writer = writable.getWriter();
      for (const promise of [writer.write(make()), writer.close(), writer.closed]) promise.catch(() => {});
      return new Response(readable).bytes();
    });
  }, name);
}
promise_test(async () => {
  let deep = [];
  for (let i = 0; i < 100_000; i++) deep = [deep];
  await survives(() => structuredClone(deep));
  await survives(() => Response.json(deep));
  await survives(() => new Headers(deep));
  await survives(() => fetch("https://echo.test/", deep));
}, "deep values");
promise_test(async () => {
  await survives(() => structuredClone({ get a() { return structuredClone(this); } }));
  await survives(() => new Blob([{ toString: () => { throw new Error(); } }]));
  await survives(() => new URL({ toString: () => ({}) }));
  await survives(() => new URLSearchParams({ [Symbol.iterator]: () => ({ next: () => 5 }) }));
  await survives(() => new Headers(new Proxy({}, { ownKeys: () => ["a", "a"] })));
  await survives(() => structuredClone(1, { transfer: [new ArrayBuffer(1), 5] }));
}, "values that do not keep their promises");
promise_test(async () => {
  const before = performance.now();
  new URL("http://a/" + "x".repeat(1_000_000));
  new URLSearchParams("a=b&".repeat(100_000)).toString();
  atob(btoa("x".repeat(1_000_000)));
  new TextDecoder().decode(new TextEncoder().encode("ä".repeat(1_000_000)));
  await new Response("x".repeat(1_000_000)).text();
  assert_true(performance.now() - before < 5000);
}, "large values");
