// The Inspector's command line, one process per request. Usage: KEY=… node inspector.mjs URL ERA   (ERA: legacy, auto, modern)
// It shows no progress and cannot cancel, so there the result of a call with progress counts, and a client that goes away.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const [url, era] = process.argv.slice(2);
const program = fileURLToPath(new URL('node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url));
// It keeps files in the home directory.
const home = mkdtempSync(join(tmpdir(), 'bulkhead-inspector-'));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));

function start(...args) {
  const all = [
    program, '--cli', url, '--transport', 'http', '--header', `Authorization: Bearer ${process.env.KEY}`, '--protocol-era', era,
    '--format', 'json', '-q', ...args,
  ];
  const env = { ...process.env, HOME: home, MCP_CATALOG_PATH: join(home, 'catalog.json') };
  const child = spawn(process.execPath, all, { stdio: ['ignore', 'pipe', 'pipe'], env });
  const said = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', text => { said.out += text; });
  child.stderr.setEncoding('utf8').on('data', text => { said.err += text; });
  return { child, said, end: once(child, 'close') };
}

async function run(...args) {
  const { child, said, end } = start(...args);
  const timer = setTimeout(() => child.kill('SIGKILL'), 30_000);
  const [code] = await end;
  clearTimeout(timer);
  const line = said.out.trim();
  return { code, result: line ? JSON.parse(line).result : undefined, ...said };
}

async function answer(...args) {
  const ran = await run(...args);
  assert.equal(ran.code, 0, `${args.join(' ')}: ${ran.out}${ran.err}`);
  return ran.result;
}

const tool = (name, input) => ['--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(input)];

async function all() {
  const { tools } = await answer('--method', 'tools/list');
  for (const name of ['double_price', 'count', 'wait', 'waits']) assert.ok(tools.some(tool => tool.name === name), name);
  assert.deepEqual((await answer(...tool('double_price', { price: 45 }))).structuredContent, { doublePrice: 90 });
  const bad = await run(...tool('double_price', {}));
  assert.notEqual(bad.code, 0);
  assert.match(bad.out + bad.err, /price/);
  assert.equal((await answer('--method', 'resources/read', '--uri', 'notes://today')).contents[0].text, 'Buy milk.');
  const prompt = await answer('--method', 'prompts/get', '--prompt-name', 'greet', '--prompt-args', 'who=Ada');
  assert.equal(prompt.messages[0].content.text, 'Greet Ada.');
  assert.deepEqual((await answer(...tool('count', { to: 3, pause_ms: 50 }))).structuredContent, { counted: 3 });
  await goAway();
}

/** It is ended in the middle of a call; in the modern era that gives the call up. */
async function goAway() {
  const name = `inspector-${era}`;
  const { child, end } = start(...tool('wait', { ms: 20_000, name }));
  await until('the wait begins', async () => (await waits(name)).started === 1);
  child.kill('SIGKILL');
  await end;
  if (era !== 'legacy') await until('the wait is given up', async () => (await waits(name)).cancelled === 1);
  assert.deepEqual((await answer(...tool('double_price', { price: 1 }))).structuredContent, { doublePrice: 2 });
}

async function until(what, holds) {
  for (const deadline = Date.now() + 15_000; !await holds(); await sleep(50)) assert.ok(Date.now() < deadline, `too late: ${what}`);
}

/** Asks by hand, because it is asked often. */
async function waits(name) {
  const version = '2026-07-28';
  const meta = { 'io.modelcontextprotocol/protocolVersion': version, 'io.modelcontextprotocol/clientCapabilities': {} };
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization: `Bearer ${process.env.KEY}`,
      'mcp-protocol-version': version, 'mcp-method': 'tools/call', 'mcp-name': 'waits',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'waits', arguments: { name }, _meta: meta } }),
  });
  return (await response.json()).result.structuredContent;
}

const watchdog = setTimeout(() => { console.error('no end in 100 s'); process.exit(1); }, 100_000);
await all();
clearTimeout(watchdog);
