const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
promise_test(async () => {
  const data = new TextEncoder().encode("abc");
  assert_equals(hex(await crypto.subtle.digest("SHA-1", data)), "a9993e364706816aba3e25717850c26c9cd0d89d");
  assert_equals(hex(await crypto.subtle.digest({ name: "sha-256" }, data)), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  await promise_rejects_dom(null, "NotSupportedError", crypto.subtle.digest("MD5", data));
}, "digest");
promise_test(async () => {
  // RFC 4231, test case 2.
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode("Jefe"), { name: "HMAC", hash: "SHA-256" }, true, ["sign", "verify"]);
  const data = new TextEncoder().encode("what do ya want for nothing?");
  const tag = await crypto.subtle.sign("HMAC", key, data);
  assert_equals(hex(tag), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  assert_true(await crypto.subtle.verify("HMAC", key, tag, data));
  new Uint8Array(tag)[0] ^= 1;
  assert_false(await crypto.subtle.verify("HMAC", key, tag, data));
  const jwk = await crypto.subtle.exportKey("jwk", key);
  assert_equals(jwk.k, "SmVmZQ");
  const made = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-512" }, false, ["sign"]);
  await promise_rejects_dom(null, "InvalidAccessError", crypto.subtle.exportKey("raw", made));
  await promise_rejects_dom(null, "InvalidAccessError", crypto.subtle.verify("HMAC", made, tag, data));
}, "HMAC");
test(() => {
  const array = crypto.getRandomValues(new Uint32Array(64));
  assert_true(new Set(array).size > 60);
  assert_throws_dom("TypeMismatchError", () => crypto.getRandomValues(new Float64Array(1)));
  assert_throws_dom("QuotaExceededError", () => crypto.getRandomValues(new Uint8Array(65537)));
  const uuid = crypto.randomUUID();
  assert_true(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(uuid), uuid);
}, "getRandomValues and randomUUID");
test(() => {
  const drawn = Array.from({ length: 2000 }, () => Math.random());
  assert_true(drawn.every((x) => x >= 0 && x < 1));
  assert_equals(new Set(drawn).size, 2000);
  const mean = drawn.reduce((a, b) => a + b) / 2000;
  assert_true(mean > 0.45 && mean < 0.55, `mean ${mean}`);
  assert_equals(Math.random.name, "random");
  assert_equals(Math.random.length, 0);
}, "Math.random");
