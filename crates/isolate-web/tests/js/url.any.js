test(() => {
  const url = new URL("../b?x=1#y", "https://user:pw@example.com:8443/a/c/d");
  assert_equals(url.href, "https://user:pw@example.com:8443/a/b?x=1#y");
  assert_array_equals(
    [url.protocol, url.username, url.password, url.host, url.hostname, url.port, url.pathname, url.search, url.hash, url.origin],
    ["https:", "user", "pw", "example.com:8443", "example.com", "8443", "/a/b", "?x=1", "#y", "https://example.com:8443"],
  );
}, "parts");
test(() => {
  const url = new URL("http://example.com/");
  url.port = "81";
  url.pathname = "/p q";
  url.searchParams.append("k", "ä &");
  url.hash = "h";
  assert_equals(url.href, "http://example.com:81/p%20q?k=%C3%A4+%26#h");
  url.search = "?z=9";
  assert_equals(url.searchParams.get("z"), "9");
}, "setters and searchParams stay together");
test(() => {
  assert_throws_js(TypeError, () => new URL("nonsense"));
  assert_equals(URL.parse("nonsense"), null);
  assert_true(URL.canParse("a:b"));
  assert_equals(new URL("https://ÄÖ.example/").hostname, "xn--4ca0b.example");
  assert_equals(new URL("http://0x7f.1/").hostname, "127.0.0.1");
}, "refusal, IDNA, numbers as addresses");
test(() => {
  const params = new URLSearchParams([["b", "2"], ["a", "1"], ["b", "3"]]);
  params.sort();
  assert_equals(params.toString(), "a=1&b=2&b=3");
  assert_array_equals([...params.keys()], ["a", "b", "b"]);
  assert_array_equals(params.getAll("b"), ["2", "3"]);
  assert_equals(new URLSearchParams({ q: "1" }).get("q"), "1");
}, "URLSearchParams");
