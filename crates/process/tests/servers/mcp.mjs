// What the test servers in Node have in common: the protocol, without packages.
import { createInterface } from "node:readline";

/** `run(given)` gives the value of the tool `run`. */
export async function serve(run) {
  const answers = {
    initialize: ({ protocolVersion }) => ({
      protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "node", version: "1" },
    }),
    "tools/list": () => ({ tools: [{ name: "run", inputSchema: { type: "object" } }] }),
    "tools/call": async ({ arguments: given }) => ({ content: [], structuredContent: await run(given) }),
  };
  const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) continue;
    if (!answers[method]) {
      send({ id, error: { code: -32601, message: "no such method" } });
      continue;
    }
    Promise.resolve(answers[method](params)).then(
      (result) => send({ id, result }),
      (error) => send({ id, error: { code: -32000, message: String(error) } }),
    );
  }
}
