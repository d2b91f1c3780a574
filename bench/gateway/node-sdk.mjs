// A plain Node server with the official TypeScript SDK, version 1, as its examples show it; no sandbox, no key.
// Usage: node node-sdk.mjs stateless|session|session-sse      prints the port it listens on
//   stateless    a server and a transport per request, JSON answers
//   session      a server and a transport per session, JSON answers
//   session-sse  the same with the default answer, an event stream
import { randomUUID } from 'node:crypto';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import * as z from 'zod/v4';

const mode = process.argv[2];
const inputSchema = { price: z.number() };
const outputSchema = { doublePrice: z.number() };

function prices() {
  const server = new McpServer({ name: 'prices', version: '1.0.0' });
  server.registerTool('double_price', { description: 'Doubles a price.', inputSchema, outputSchema }, async ({ price }) => {
    const answer = { doublePrice: price * 2 };
    return { content: [{ type: 'text', text: JSON.stringify(answer) }], structuredContent: answer };
  });
  return server;
}

async function once(req, res) {
  const server = prices();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  res.on('close', () => { transport.close(); server.close(); });
  await server.connect(transport);
  await transport.handleRequest(req, res, req.body);
}

const sessions = new Map();

async function inSession(req, res) {
  let transport = sessions.get(req.headers['mcp-session-id']);
  if (!transport) {
    if (!isInitializeRequest(req.body)) return res.status(404).end();
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: mode === 'session',
      onsessioninitialized: id => sessions.set(id, transport),
    });
    transport.onclose = () => sessions.delete(transport.sessionId);
    await prices().connect(transport);
  }
  return transport.handleRequest(req, res, req.body);
}

const app = createMcpExpressApp();
app.post('/mcp', mode === 'stateless' ? once : inSession);
const listener = app.listen(0, '127.0.0.1', () => console.log(listener.address().port));
