promise_test(async () => {
  const upper = new TransformStream({ transform: (chunk, controller) => controller.enqueue(chunk.toUpperCase()) });
  const written = [];
  await ReadableStream.from(["a", "b"]).pipeThrough(upper).pipeTo(new WritableStream({ write: (chunk) => void written.push(chunk) }));
  assert_array_equals(written, ["A", "B"]);
}, "from, pipeThrough, pipeTo");
promise_test(async () => {
  const stream = new ReadableStream({
    type: "bytes",
    pull(controller) {
      controller.enqueue(new Uint8Array([1, 2, 3]));
      controller.close();
    },
  });
  const reader = stream.getReader({ mode: "byob" });
  const { value } = await reader.read(new Uint8Array(2));
  assert_array_equals([...value], [1, 2]);
}, "byte streams");
for (const format of ["gzip", "deflate", "deflate-raw"]) {
  promise_test(async () => {
    const text = "compress me ".repeat(1000);
    const squeezed = await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream(format))).bytes();
    assert_true(squeezed.length < 500);
    const unsqueeze = (bytes) => new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format))).text();
    assert_equals(await unsqueeze(squeezed), text);
    await promise_rejects_js(null, TypeError, unsqueeze(squeezed.slice(0, -1)), "cut short");
    await promise_rejects_js(null, TypeError, unsqueeze(new Blob([squeezed, "x"])), "more after the end");
  }, `compression: ${format}`);
}
