// A server as the SDK's own documentation writes it: nothing here is Bulkhead's.
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { z } from "zod";

const cities: Record<string, number> = { Lisbon: 21, Oslo: 4, Paris: 12 };
const beginningWith = (value: string) => Object.keys(cities).filter((city) => city.startsWith(value));

const server = new McpServer(
  { name: "weather", version: "1.0.0", title: "Weather" },
  { instructions: "Ask for a city.", capabilities: { logging: {} } },
);

server.registerTool(
  "temperature",
  {
    title: "Temperature",
    description: "How warm it is in a city.",
    inputSchema: { city: z.string() },
    outputSchema: { city: z.string(), celsius: z.number() },
    annotations: { readOnlyHint: true },
  },
  async ({ city }, extra) => {
    await server.server.sendLoggingMessage({ level: "notice", logger: "weather", data: `asked for ${city}` });
    if (!(city in cities)) throw new Error(`there is no ${city} here`);
    const progressToken = extra._meta?.progressToken;
    if (progressToken !== undefined) {
      await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress: 1, total: 2, message: "looked up" } });
    }
    const found = { city, celsius: cities[city] };
    return { content: [{ type: "text", text: `${found.celsius} °C` }], structuredContent: found };
  },
);

server.registerTool(
  "trip",
  { description: "Plans a trip, once it is known for how many.", inputSchema: { city: z.string(), days: z.number().int().min(1).default(2) } },
  async ({ city, days }) => {
    const asked = await server.server.elicitInput({
      message: `How many go to ${city}?`,
      requestedSchema: { type: "object", properties: { people: { type: "integer", minimum: 1 } }, required: ["people"] },
    });
    const text = asked.action === "accept" ? `${asked.content?.people} to ${city} for ${days} days` : "nobody goes";
    return { content: [{ type: "text", text }] };
  },
);

server.registerResource("cities", "weather://cities", { mimeType: "application/json" }, async (uri) => ({
  contents: [{ uri: uri.href, mimeType: "application/json", text: JSON.stringify(Object.keys(cities)) }],
}));

server.registerResource(
  "city",
  new ResourceTemplate("weather://city/{name}", { list: undefined, complete: { name: beginningWith } }),
  { description: "The temperature in one city." },
  async (uri, { name }) => ({ contents: [{ uri: uri.href, text: `${cities[String(name)] ?? "unknown"}` }] }),
);

server.registerPrompt(
  "pack",
  { description: "What to pack.", argsSchema: { city: completable(z.string(), beginningWith) } },
  ({ city }) => ({ messages: [{ role: "user", content: { type: "text", text: `What do I pack for ${city}?` } }] }),
);

export default server;
