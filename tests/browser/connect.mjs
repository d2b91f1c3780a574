// Opens a link to connect with a real browser and goes all the way: the host's page, the provider's consent, back to the code, and
// not a second time. Prints the code. Speaks to Chromium by its own protocol (DevTools), so that nothing has to be installed beside it.
//   connect.mjs BROWSER LINK PROVIDER_URL FOLDER [cancel]
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [program, link, provider, folder, then] = process.argv.slice(2);
const PATIENCE_MS = 30_000;

const profile = mkdtempSync(join(tmpdir(), "bulkhead-browser-"));
const browser = spawn(program, [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
  "--no-first-run", "--no-default-browser-check", "--disable-extensions", "--disable-sync",
  "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
  // Whatever else it might want to look up is not there.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  "--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank",
], { stdio: ["ignore", "ignore", "pipe"] });
const ended = new Promise((resolve) => browser.on("exit", resolve).on("error", resolve));

/** The address that the browser prints when it is ready. */
async function address() {
  let said = "";
  for await (const chunk of browser.stderr) {
    said += chunk;
    const found = /DevTools listening on (ws:\/\/\S+)/.exec(said);
    if (found) return found[1];
  }
  throw new Error(`the browser did not start: ${said}`);
}

/** One page of the browser. */
class Page {
  #socket;
  #next = 0;
  #waiting = new Map();
  session;
  requests = [];
  responses = [];
  complaints = [];

  static async open(url) {
    const page = new Page();
    page.#socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      page.#socket.onopen = resolve;
      page.#socket.onerror = () => reject(new Error("the browser cannot be spoken to"));
    });
    page.#socket.onmessage = ({ data }) => page.#hear(JSON.parse(data));
    const { targetId } = await page.send("Target.createTarget", { url: "about:blank" });
    ({ sessionId: page.session } = await page.send("Target.attachToTarget", { targetId, flatten: true }));
    for (const domain of ["Page", "Network", "Runtime", "Log"]) await page.send(`${domain}.enable`);
    return page;
  }

  #hear({ id, method, params, result, error }) {
    if (id !== undefined) {
      const { resolve, reject } = this.#waiting.get(id);
      this.#waiting.delete(id);
      return error ? reject(new Error(error.message)) : resolve(result);
    }
    if (method === "Network.requestWillBeSent") this.requests.push(params);
    if (method === "Network.responseReceived") this.responses.push(params);
    if (method === "Log.entryAdded" && params.entry.level === "error") this.complaints.push(params.entry);
  }

  send(method, params = {}) {
    const id = this.#next++;
    this.#socket.send(JSON.stringify({ id, method, params, sessionId: this.session }));
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  async read(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, returnByValue: true });
    assert.equal(exceptionDetails, undefined, expression);
    return result.value;
  }

  /** Waits until the page that is shown has what is looked for. */
  async until(expression) {
    for (const end = Date.now() + PATIENCE_MS; ;) {
      // While one page gives way to the next, there is nothing to ask.
      if (await this.read(`document.readyState === "complete" && !!(${expression})`).catch(() => false)) return;
      assert.ok(Date.now() < end, `${expression} at ${await this.read("location.href + ' ' + document.body?.innerText")}`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  /** As a person does it: where the button is on the screen. */
  async click(selector) {
    await this.read(`document.querySelector(${JSON.stringify(selector)}).scrollIntoView({ block: "center", behavior: "instant" })`);
    const rect = `document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect()`;
    const [x, y] = await this.read(`(({ x, y, width, height }) => [x + width / 2, y + height / 2])(${rect})`);
    for (const type of ["mousePressed", "mouseReleased"]) {
      await this.send("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1 });
    }
  }

  /** What the server said when it sent the page that is shown now. */
  async document() {
    const url = await this.read("location.href");
    const { response } = this.responses.findLast((seen) => seen.type === "Document" && seen.response.url === url);
    const headers = Object.entries(response.headers).map(([name, value]) => [name.toLowerCase(), value]);
    return { url, status: response.status, headers: Object.fromEntries(headers) };
  }

  /** In light and dark, on a screen and on a small phone, where nothing may hang over the edge. */
  async picture(name) {
    for (const [width, scheme] of [[1000, "light"], [360, "light"], [360, "dark"]]) {
      await this.send("Emulation.setDeviceMetricsOverride", { width, height: 800, deviceScaleFactor: 1, mobile: width < 500 });
      await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
      const { data } = await this.send("Page.captureScreenshot", { format: "png" });
      writeFileSync(join(folder, `${name}-${width}-${scheme}.png`), Buffer.from(data, "base64"));
      assert.ok((await this.read("document.documentElement.scrollWidth")) <= width, `${name} at ${width}`);
    }
    await this.send("Emulation.clearDeviceMetricsOverride");
  }

  text() {
    return this.read("document.body.innerText");
  }
}

/** A page of the host: nothing runs in it, nothing frames it, nothing keeps it, and nobody is told where it was. */
function guarded({ url, headers }) {
  const rules = headers["content-security-policy"].split(";").map((rule) => rule.trim());
  for (const rule of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"]) assert.ok(rules.includes(rule), url);
  assert.ok(!rules.some((rule) => rule.includes("unsafe")), url);
  assert.equal(headers["cache-control"], "no-store", url);
  assert.ok(["same-origin", "no-referrer"].includes(headers["referrer-policy"]), url);
  assert.equal(headers["x-content-type-options"], "nosniff", url);
}

async function drive() {
  const page = await Page.open(await address());
  const host = new URL(link).origin;

  await page.send("Page.navigate", { url: link });
  await page.until("document.title === 'Connect'");
  const shown = await page.text();
  for (const said of ["acme", "hub", "the key", "Access", "read", "asked for this yourself"]) assert.ok(shown.includes(said), shown);
  guarded(await page.document());
  await page.picture("1-asked");

  await page.click("#connect");
  await page.until("document.querySelector('#allow')");
  assert.ok((await page.read("location.href")).startsWith(`${provider}/authorize?`));
  assert.equal(await page.read("document.querySelector('#scope').textContent"), "read");
  const query = new URLSearchParams(await page.read("location.search"));
  assert.equal(query.get("code_challenge_method"), "S256");
  assert.equal(query.get("redirect_uri"), `${host}/connect/callback`);
  // The link would be good for whoever learns it.
  const told = page.requests.filter(({ request }) => request.url.startsWith(provider)).map(({ request }) => request.headers);
  assert.ok(told.length > 0 && told.every((headers) => !JSON.stringify(headers).includes("/connect/")), JSON.stringify(told));
  const { cookies } = await page.send("Network.getCookies", { urls: [`${host}/connect/callback`] });
  assert.deepEqual(cookies.map(({ httpOnly, sameSite, path }) => ({ httpOnly, sameSite, path })), [
    { httpOnly: true, sameSite: "Lax", path: "/" },
  ]);

  await page.click("#user");
  await page.send("Input.insertText", { text: "ann" });
  await page.click("#allow");
  await page.until("document.title === 'Confirm'");
  const back = await page.document();
  assert.ok(back.url.startsWith(`${host}/connect/callback?`) && back.status === 200, back.url);
  guarded(back);
  const said = await page.text();
  for (const part of ["Give this code to nobody else: whoever has it can act as you at hub", "acme"]) assert.ok(said.includes(part), said);
  const code = await page.read("document.querySelector('#code').textContent");
  assert.match(code, /^[B-Z]{4}-[B-Z]{4}$/);
  await page.picture("2-code");
  if (then === "cancel") {
    await page.click("#cancel");
    await page.until("document.title === 'Cancelled'");
    guarded(await page.document());
    await page.picture("3-cancelled");
  }
  // That the provider has no icon is its own affair.
  assert.deepEqual(page.complaints.filter((entry) => !entry.url?.startsWith(provider)).map((entry) => entry.text), []);

  // Neither the link nor the way back is good a second time.
  for (const used of [link, back.url]) {
    await page.send("Page.navigate", { url: "about:blank" });
    await page.until("location.href === 'about:blank'");
    await page.send("Page.navigate", { url: used });
    await page.until("document.title === 'Not connected'");
    const refused = await page.document();
    assert.equal(refused.status, 404, used);
    assert.ok((await page.text()).includes("not good any more"));
    guarded(refused);
  }

  const elsewhere = page.requests.map(({ request }) => request.url);
  assert.deepEqual(elsewhere.filter((url) => ![host, provider, "null"].includes(new URL(url).origin)), []);
  const loaded = page.requests.filter(({ type, request }) => type !== "Document" && request.url.startsWith(host));
  assert.deepEqual(loaded.map(({ request }) => request.url), [], "the host's pages load nothing");
  return code;
}

try {
  console.log(await drive());
} finally {
  browser.kill("SIGKILL");
  await ended;
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}
process.exit(0);
