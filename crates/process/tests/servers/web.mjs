// Speaks MCP over HTTP, on whatever address `localhost` is. Answers in JSON.
import { createServer } from "node:http";

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "node", version: "1" },
  }),
  "tools/list": () => ({ tools: [{ name: "run", inputSchema: { type: "object" } }] }),
  "tools/call": ({ arguments: given }) => ({ content: [], structuredContent: given }),
};

createServer(async (request, response) => {
  if (request.method !== "POST") return response.writeHead(405).end();
  let body = "";
  for await (const piece of request) body += piece;
  const { id, method, params } = JSON.parse(body);
  if (id === undefined) return response.writeHead(202).end();
  const outcome = answers[method] ? { result: answers[method](params) } : { error: { code: -32601, message: "no such method" } };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
}).listen(8080, "localhost");
