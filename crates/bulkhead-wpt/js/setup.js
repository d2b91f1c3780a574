// The embedder of the test runner: answers fetches from the checkout and collects what the harness says.
// Evaluated before the web APIs are there; everything that needs them runs later.
(natives) => {
  const ORIGIN = "http://web-platform.test:8000";
  const root = globalThis;
  const evaluate = eval;
  let context;
  let exports;
  let done = false;
  let status = null;
  let checks = [];
  /** Answers of the host that wait for the next turn. */
  let answers = [];
  const bodies = new Map();
  let nextBody = 1;

  const types = { json: "application/json", js: "text/javascript", html: "text/html", txt: "text/plain", css: "text/css" };

  /** What our own tests see: every call to the host, and what was logged. */
  const calls = [];
  const logs = [];

  /** Hosts for our own tests. `undefined` means that the request is answered later or never. */
  const hosts = {
    "echo.test": (meta, body) => respond(meta, [new TextEncoder().encode(JSON.stringify({ ...meta, body: new TextDecoder().decode(body) }))]),
    "chunks.test": (meta) => respond(meta, ["one ", "two ", "three"].map((text) => new TextEncoder().encode(text))),
    "empty.test": (meta) => ({ meta: { status: 204, statusText: "No Content", headers: [], url: meta.url, redirected: true, bodyId: null } }),
    "refuse.test": () => {
      throw Object.assign(new Error("not on the list"), { code: "egress_denied" });
    },
  };

  function respond(meta, chunks) {
    const id = nextBody++;
    bodies.set(id, chunks);
    return { meta: { status: 200, statusText: "OK", headers: [["Content-Type", "text/plain"], ["X-A", "1"]], url: meta.url, redirected: false, bodyId: id } };
  }

  function answer(op, meta, body) {
    calls.push({ op, meta, body });
    if (op === "fetch_read") {
      const chunk = bodies.get(meta.id)?.shift();
      return chunk === undefined ? { meta: { done: true } } : { meta: { done: false }, body: chunk };
    }
    if (op !== "fetch") return { meta: {} };
    const url = new URL(meta.url);
    if (hosts[url.host] !== undefined) return hosts[url.host](meta, body);
    const data = url.origin === ORIGIN ? natives.readFile(decodeURIComponent(url.pathname)) : undefined;
    if (url.origin !== ORIGIN) throw Object.assign(new Error(`no route to ${url.host}`), { code: "unreachable" });
    const head = { status: data ? 200 : 404, statusText: data ? "OK" : "Not Found", url: meta.url.split("#")[0], redirected: false };
    const type = types[url.pathname.split(".").pop()] ?? "application/octet-stream";
    const id = nextBody++;
    bodies.set(id, [data ?? new TextEncoder().encode("not found")]);
    return { meta: { ...head, headers: [["content-type", type]], bodyId: id } };
  }

  /**
   * In June 2026 the URL standard reversed itself: a domain that is all ASCII is never refused for what its xn-- labels
   * decode to (whatwg/url#914, web-platform-tests#60476). Older checkouts expect the refusal; such a check passes
   * when the host is kept as it was, in lower case, which is what it asks for now.
   */
  function isReversed({ name, message }) {
    const input = /^ToASCII\("([\x20-\x7e]*)"\)/.exec(name)?.[1] ?? /^Parsing: <\w+:\/\/([\x21-\x7e]*?)(?:\/\w*)?> without base$/.exec(name)?.[1];
    if (!location.pathname.startsWith("/url/") || !message?.includes("did not throw") || !/xn--/i.test(input ?? "")) return false;
    return URL.parse(`https://${input}/x`)?.host === input.toLowerCase();
  }

  const embedder = {
    hostCall(op, meta, body) {
      return new Promise((resolve, reject) => {
        // A host that never answers, for tests of aborting.
        if (op === "fetch" && meta.includes("//never.test/")) {
          calls.push({ op, meta: JSON.parse(meta), body });
          return;
        }
        answers.push(() => {
          try {
            const { meta: out, body: data } = answer(op, JSON.parse(meta), body);
            resolve({ meta: JSON.stringify(out), body: data ?? new Uint8Array(0) });
          } catch (error) {
            reject(error);
          }
        });
      });
    },
    log: (level, text) => logs.push({ level, text }),
    now: natives.now,
    asyncContext: () => context,
    setAsyncContext: (value) => {
      context = value;
    },
  };

  return {
    embedder,
    begin(path, installed) {
      exports = installed;
      const href = `${ORIGIN}/${path.replace(/\.(any|window)\.js/, ".any.html")}`;
      exports.setBaseUrl?.(href);
      const url = new URL(href);
      const location = {};
      for (const key of ["href", "origin", "protocol", "host", "hostname", "port", "pathname", "search", "hash"]) location[key] = url[key];
      location.toString = () => href;
      root.location = location;
      root.GLOBAL = { isWindow: () => false, isWorker: () => false, isShadowRealm: () => false };
      root.gc = natives.collect;
      root.bulkhead = { ...exports, calls, logs, context: embedder.asyncContext, setContext: embedder.setAsyncContext, inFork: natives.inFork };
      root.importScripts = () => {
        throw new TypeError("importScripts is not supported");
      };
    },
    harnessLoaded() {
      // idlharness.js asks what kind of global object this is; the harness itself must not, or it waits for a worker's messages.
      root.DedicatedWorkerGlobalScope = class DedicatedWorkerGlobalScope {
        static [Symbol.hasInstance](object) {
          return object === root;
        }
      };
      // It also evaluates the expressions in its tests.
      if (location.pathname.includes("idlharness")) root.eval = evaluate;
      add_result_callback((test) => {
        const check = { name: String(test.name), passed: test.status === 0, message: test.message == null ? null : String(test.message) };
        if (!check.passed && isReversed(check)) check.passed = check.reversed = true;
        checks.push(check);
      });
      add_completion_callback((tests, harness) => {
        done = true;
        if (harness.status !== 0 && harness.status !== 3) status = String(harness.message ?? "the harness failed");
      });
    },
    loaded() {
      root.done?.();
    },
    turn() {
      if (done) return -1;
      const ready = answers;
      answers = [];
      for (const each of ready) each();
      const next = exports.runTimers();
      if (done) return -1;
      return ready.length > 0 || answers.length > 0 ? 0 : next < 0 ? 5 : next;
    },
    results(error) {
      // Names and messages may hold half a surrogate pair, which no other parser of JSON would take.
      const clean = (key, value) => (typeof value === "string" ? value.toWellFormed() : value);
      return JSON.stringify({ checks, error: error ?? status }, clean);
    },
  };
};
