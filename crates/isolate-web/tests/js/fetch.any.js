const sent = (op) => bulkhead.calls.filter((call) => call.op === op);

test(() => {
  const headers = new Headers({ B: "2", a: " 1 " });
  headers.append("a", "3");
  headers.append("set-cookie", "x=1");
  headers.append("set-cookie", "y=2");
  assert_equals(JSON.stringify([...headers]), '[["a","1, 3"],["b","2"],["set-cookie","x=1"],["set-cookie","y=2"]]');
  assert_throws_js(TypeError, () => headers.set("a b", "c"));
  assert_throws_js(TypeError, () => headers.set("a", "c\nd"));
}, "Headers");
promise_test(async () => {
  const request = new Request("https://echo.test/", { method: "post", body: "x", headers: { "X-Y": "1" } });
  assert_equals(request.method, "POST");
  const clone = request.clone();
  assert_equals(await request.text(), "x");
  assert_true(request.bodyUsed);
  await promise_rejects_js(null, TypeError, request.text());
  assert_equals(await clone.text(), "x");
  assert_throws_js(TypeError, () => new Request("https://echo.test/", { body: "x" }), "GET has no body");
  assert_throws_js(TypeError, () => new Request("https://a:b@echo.test/"), "credentials");
}, "Request");
promise_test(async () => {
  assert_equals((await Response.json({ a: 1 }).json()).a, 1);
  assert_equals(Response.redirect("https://a.test/", 301).headers.get("location"), "https://a.test/");
  assert_equals(Response.error().type, "error");
  assert_throws_js(RangeError, () => new Response("", { status: 99 }));
  assert_throws_js(TypeError, () => new Response("x", { status: 204 }));
}, "Response");
promise_test(async () => {
  const response = await fetch("https://echo.test/p?q#f", { method: "PUT", body: JSON.stringify({ a: 1 }), headers: { A: "b" }, redirect: "manual" });
  assert_true(response.ok);
  assert_equals(response.headers.get("x-a"), "1");
  const seen = await response.json();
  assert_equals(seen.method, "PUT");
  assert_equals(seen.url, "https://echo.test/p?q");
  assert_equals(seen.redirect, "manual");
  assert_equals(seen.bodyLength, 7);
  assert_equals(seen.body, '{"a":1}');
  assert_equals(JSON.stringify(seen.headers), '[["a","b"],["content-type","text/plain;charset=UTF-8"]]');
}, "fetch tells the host what to send");
promise_test(async () => {
  const response = await fetch("https://chunks.test/");
  const chunks = [];
  for await (const chunk of response.body) chunks.push(new TextDecoder().decode(chunk));
  assert_array_equals(chunks, ["one ", "two ", "three"]);
  assert_equals(await (await fetch("https://chunks.test/")).text(), "one two three");
}, "the body comes in pieces");
promise_test(async () => {
  const response = await fetch("https://empty.test/");
  assert_equals(response.status, 204);
  assert_true(response.redirected);
  assert_equals(response.body, null);
}, "no body");
promise_test(async () => {
  const response = await fetch("https://chunks.test/");
  const reader = response.body.getReader();
  await reader.read();
  const before = sent("fetch_cancel").length;
  await reader.cancel();
  assert_equals(sent("fetch_cancel").length, before + 1);
  assert_equals(sent("fetch_cancel").at(-1).meta.of, "body");
}, "cancelling the body tells the host");
promise_test(async () => {
  try {
    await fetch("https://refuse.test/");
    assert_unreached();
  } catch (error) {
    assert_equals(error.constructor, TypeError);
    assert_equals(error.message, "fetch failed: not on the list");
    assert_equals(error.cause.code, "egress_denied");
  }
}, "a refusal is a TypeError with the host's code on its cause");
promise_test(async () => {
  const controller = new AbortController();
  const pending = fetch("https://never.test/", { signal: controller.signal });
  const { meta } = sent("fetch").at(-1);
  controller.abort(new RangeError("enough"));
  await promise_rejects_js(null, RangeError, pending);
  await new Promise((resolve) => setTimeout(resolve, 1));
  assert_equals(sent("fetch_cancel").at(-1).meta.id, meta.id);
  assert_equals(sent("fetch_cancel").at(-1).meta.of, "request");
  await promise_rejects_dom(null, "AbortError", fetch("https://never.test/", { signal: AbortSignal.abort() }));
}, "aborting before the answer");
promise_test(async () => {
  const controller = new AbortController();
  const response = await fetch("https://chunks.test/", { signal: controller.signal });
  controller.abort();
  await promise_rejects_dom(null, "AbortError", response.text());
}, "aborting while the body comes");
promise_test(async () => {
  const body = ReadableStream.from([new Uint8Array([97]), new Uint8Array([98, 99])]);
  assert_throws_js(TypeError, () => new Request("https://echo.test/", { method: "POST", body }), "duplex is needed");
  await fetch("https://echo.test/", { method: "POST", body, duplex: "half" });
  await new Promise((resolve) => setTimeout(resolve, 5));
  const { meta } = sent("fetch").at(-1);
  assert_true(meta.stream);
  assert_equals(meta.bodyLength, null);
  const writes = sent("fetch_write").filter((call) => call.meta.id === meta.id);
  assert_array_equals(writes.map((call) => call.meta.done), [false, false, true]);
  assert_array_equals([...writes[1].body], [98, 99]);
}, "a body that is a stream is sent piece by piece");
promise_test(async () => {
  let pulled = 0;
  let cancelled;
  const endless = new ReadableStream({
    pull: (controller) => controller.enqueue(new Uint8Array([++pulled])),
    cancel: (reason) => void (cancelled = reason),
  });
  const controller = new AbortController();
  await fetch("https://echo.test/", { method: "POST", body: endless, duplex: "half", signal: controller.signal });
  const { meta } = sent("fetch").at(-1);
  await new Promise((resolve) => setTimeout(resolve, 10));
  const writes = sent("fetch_write").filter((call) => call.meta.id === meta.id).length;
  assert_true(writes > 0 && pulled - writes < 4, `${pulled} chunks were pulled for ${writes} sent`);
  controller.abort();
  await new Promise((resolve) => setTimeout(resolve, 5));
  const after = sent("fetch_write").length;
  assert_equals(cancelled, controller.signal.reason);
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert_equals(sent("fetch_write").length, after, "nothing is sent after aborting");
}, "the next piece is pulled when the host has taken the one before");
promise_test(async () => {
  const response = await fetch("data:text/x;base64,aGk=");
  assert_equals(response.headers.get("content-type"), "text/x");
  assert_equals(await response.text(), "hi");
  await promise_rejects_js(null, TypeError, fetch("file:///etc/passwd"));
  await promise_rejects_js(null, TypeError, fetch("ftp://a.test/"));
}, "data: is answered here, other schemes are refused");
promise_test(async () => {
  const good = "sha256-" + btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode("one two three")))));
  assert_equals(await (await fetch("https://chunks.test/", { integrity: good })).text(), "one two three");
  await promise_rejects_js(null, TypeError, fetch("https://chunks.test/", { integrity: good.replace(/.{4}$/, "AAA=") }));
}, "integrity is checked");
