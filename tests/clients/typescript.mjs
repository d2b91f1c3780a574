// The TypeScript clients. Usage: KEY=… node typescript.mjs URL CLIENT     (CLIENT: sdk, legacy, auto)
//   sdk: @modelcontextprotocol/sdk 1.x; legacy and auto: @modelcontextprotocol/client 2.x
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

const [url, which] = process.argv.slice(2);
const options = { requestInit: { headers: { Authorization: `Bearer ${process.env.KEY}` } } };
const identity = { name: 'bulkhead-clients', version: '1.0.0' };

async function open(url) {
  if (which === 'sdk') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const transport = new StreamableHTTPClientTransport(new URL(url), options);
    const client = new Client(identity);
    await client.connect(transport);
    assert.equal(transport.protocolVersion, '2025-11-25');
    return { client, call: (name, args, request) => client.callTool({ name, arguments: args }, undefined, request) };
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const client = new Client(identity, which === 'auto' ? { versionNegotiation: { mode: 'auto' } } : {});
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
  assert.equal(client.getNegotiatedProtocolVersion(), which === 'auto' ? '2026-07-28' : '2025-11-25');
  return { client, call: (name, args, request) => client.callTool({ name, arguments: args }, request) };
}

/** The answer is an error, of the tool or of the protocol, that names what is wrong. */
async function badArgument(call) {
  let said;
  try {
    const result = await call('double_price', { price: 'much' });
    assert.equal(result.isError, true);
    said = result.content[0].text;
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    said = error.message;
  }
  assert.match(said, /price/);
}

async function progress(call) {
  const seen = [];
  const onprogress = ({ progress, total, message }) => seen.push(`${progress}/${total} ${message}`);
  const result = await call('count', { to: 3, pause_ms: 100 }, { onprogress });
  assert.deepEqual(result.structuredContent, { counted: 3 });
  assert.deepEqual(seen, ['1/3 step 1', '2/3 step 2', '3/3 step 3']);
}

async function cancel(call, name) {
  const signal = AbortSignal.timeout(500);
  await assert.rejects(call('wait', { ms: 20_000, name }, { signal }));
  for (const deadline = Date.now() + 5000; ;) {
    const { structuredContent } = await call('waits', { name });
    if (structuredContent.cancelled === 1) return;
    assert.ok(Date.now() < deadline, 'the server did not hear of the cancellation');
    await sleep(50);
  }
}

const watchdog = setTimeout(() => { console.error('no end in 100 s'); process.exit(1); }, 100_000);
const { client, call } = await open(url);
const { tools } = await client.listTools();
for (const name of ['double_price', 'count', 'wait', 'waits']) assert.ok(tools.some(tool => tool.name === name), name);
assert.deepEqual((await call('double_price', { price: 45 })).structuredContent, { doublePrice: 90 });
await badArgument(call);
assert.equal((await client.readResource({ uri: 'notes://today' })).contents[0].text, 'Buy milk.');
assert.equal((await client.getPrompt({ name: 'greet', arguments: { who: 'Ada' } })).messages[0].content.text, 'Greet Ada.');
await progress(call);
await cancel(call, `typescript-${which}`);
await assert.rejects(call('wait', { ms: 20_000, name: `typescript-${which}-timeout` }, { timeout: 300 }), /time/i);
await client.close();

if (process.env.AGGREGATE_URL) {
  const aggregate = await open(process.env.AGGREGATE_URL);
  assert.deepEqual((await aggregate.call('clients__double_price', { price: 45 })).structuredContent, { doublePrice: 90 });
  await aggregate.client.close();
}
clearTimeout(watchdog);
