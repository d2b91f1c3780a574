promise_test(async () => {
  const blob = new Blob(["ab", new Uint8Array([99]), new Blob(["d"])], { type: "Text/Plain" });
  assert_equals(blob.size, 4);
  assert_equals(blob.type, "text/plain");
  assert_equals(await blob.slice(1, -1).text(), "bc");
  assert_array_equals([...(await blob.bytes())], [97, 98, 99, 100]);
  let streamed = "";
  for await (const chunk of blob.stream()) streamed += new TextDecoder().decode(chunk);
  assert_equals(streamed, "abcd");
}, "Blob");
promise_test(async () => {
  const form = new FormData();
  form.append("text", "a\nb");
  form.append("file", new File(["content"], 'n"1.txt', { type: "text/x" }));
  const response = new Response(form);
  const text = await response.clone().text();
  assert_true(text.includes('name="text"\r\n\r\na\r\nb\r\n'));
  const back = await response.formData();
  assert_equals(back.get("text"), "a\r\nb");
  assert_equals(back.get("file").name, 'n"1.txt');
  assert_equals(back.get("file").type, "text/x");
  assert_equals(await back.get("file").text(), "content");
}, "FormData there and back");
promise_test(async () => {
  const url = URL.createObjectURL(new Blob(["x"], { type: "a/b" }));
  const response = await fetch(url);
  assert_equals(response.headers.get("content-type"), "a/b");
  assert_equals(await response.text(), "x");
  URL.revokeObjectURL(url);
  await promise_rejects_js(null, TypeError, fetch(url));
}, "blob: URLs");
