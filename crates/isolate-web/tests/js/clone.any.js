test(() => {
  const value = { date: new Date(5), map: new Map([[1, new Set(["a"])]]), big: 2n ** 70n, bytes: new Uint8Array([1, 2]), error: new RangeError("r"), re: /x/gi };
  value.self = value;
  const copy = structuredClone(value);
  assert_equals(copy.self, copy);
  assert_equals(copy.date.getTime(), 5);
  assert_true(copy.map.get(1).has("a"));
  assert_equals(copy.big, 2n ** 70n);
  assert_array_equals([...copy.bytes], [1, 2]);
  assert_true(copy.error instanceof RangeError);
  assert_equals(String(copy.re), "/x/gi");
}, "values of the language");
test(() => {
  const buffer = new Uint8Array([7]).buffer;
  const moved = structuredClone(buffer, { transfer: [buffer] });
  assert_equals(buffer.byteLength, 0);
  assert_equals(new Uint8Array(moved)[0], 7);
  assert_throws_dom("DataCloneError", () => structuredClone(buffer, { transfer: [buffer] }));
}, "transfer");
promise_test(async () => {
  const { blob, file, error } = structuredClone({ blob: new Blob(["b"]), file: new File(["f"], "n"), error: new DOMException("m", "AbortError") });
  assert_equals(await blob.text(), "b");
  assert_equals(file.name, "n");
  assert_equals(error.name, "AbortError");
  for (const refused of [() => {}, Symbol(), new Response(), new URL("a:b"), new EventTarget(), new Headers()]) {
    assert_throws_dom("DataCloneError", () => structuredClone(refused));
  }
}, "objects of the platform");
