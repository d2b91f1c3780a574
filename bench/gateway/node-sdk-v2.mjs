// A plain Node server with the official TypeScript SDK, version 2: a server per request, both eras; no sandbox, no key.
// Usage: node node-sdk-v2.mjs      prints the port it listens on
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';

const inputSchema = z.object({ price: z.number() });
const outputSchema = z.object({ doublePrice: z.number() });

function prices() {
  const server = new McpServer({ name: 'prices', version: '1.0.0' });
  server.registerTool('double_price', { description: 'Doubles a price.', inputSchema, outputSchema }, async ({ price }) => {
    const answer = { doublePrice: price * 2 };
    return { content: [{ type: 'text', text: JSON.stringify(answer) }], structuredContent: answer };
  });
  return server;
}

const listener = createServer(toNodeHandler(createMcpHandler(prices)));
listener.listen(0, '127.0.0.1', () => console.log(listener.address().port));
