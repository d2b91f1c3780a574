test(() => {
  assert_array_equals([...new TextEncoder().encode("aä€😀")], [97, 195, 164, 226, 130, 172, 240, 159, 152, 128]);
  const into = new Uint8Array(4);
  const { read, written } = new TextEncoder().encodeInto("a€€", into);
  assert_array_equals([read, written], [2, 4]);
}, "TextEncoder");
test(() => {
  assert_equals(new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0xff])), "a\ufffd");
  assert_throws_js(TypeError, () => new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([0xff])));
  assert_throws_js(RangeError, () => new TextDecoder("no-such"));
  assert_equals(new TextDecoder("shift_jis").decode(new Uint8Array([0x83, 0x65])), "テ");
  const decoder = new TextDecoder();
  const stream = { stream: true };
  assert_equals(decoder.decode(new Uint8Array([0xe2, 0x82]), stream) + decoder.decode(new Uint8Array([0xac])), "€");
}, "TextDecoder");
test(() => {
  assert_equals(btoa("a\xff"), "Yf8=");
  assert_equals(atob(" Yf8 ="), "a\xff");
  assert_throws_dom("InvalidCharacterError", () => btoa("€"));
  assert_throws_dom("InvalidCharacterError", () => atob("="));
}, "atob and btoa");
promise_test(async () => {
  const text = await new Response(new Response("grüße").body.pipeThrough(new TextDecoderStream()).pipeThrough(new TextEncoderStream())).text();
  assert_equals(text, "grüße");
}, "TextDecoderStream and TextEncoderStream");
