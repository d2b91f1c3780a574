// An MCP server over standard input and output with one tool, without packages: `double_price {"price": 45}`.
import { createInterface } from "node:readline";

const tool = {
  name: "double_price",
  description: "Doubles a price",
  inputSchema: { type: "object", properties: { price: { type: "number" } }, required: ["price"] },
};

function doublePrice({ price }) {
  const value = { doublePrice: price * 2 };
  return { content: [{ type: "text", text: JSON.stringify(value) }], structuredContent: value };
}

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "prices", version: "1" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": ({ name, arguments: given }) => {
    if (name !== tool.name) throw new Error(`there is no tool ${name}`);
    return doublePrice(given);
  },
};

function answer({ method, params }) {
  const known = methods[method];
  if (!known) return { error: { code: -32601, message: "no such method" } };
  try {
    return { result: known(params ?? {}) };
  } catch (error) {
    return { error: { code: -32602, message: error.message } };
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.id === undefined) return;
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...answer(message) }) + "\n");
});
