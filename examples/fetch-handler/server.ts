// A server as the SDK's own documentation writes it: nothing here is Bulkhead's.
import { McpServer, ResourceTemplate, acceptedContent, completable, createMcpHandler, inputRequired } from "@modelcontextprotocol/server";
import { z } from "zod";

const cities: Record<string, number> = { Lisbon: 21, Oslo: 4, Paris: 12 };
const beginningWith = (value: string) => Object.keys(cities).filter((city) => city.startsWith(value));

const people = { type: "object" as const, properties: { people: { type: "integer" as const, minimum: 1 } }, required: ["people"] };

// A new server for each request, as stateless HTTP has it.
function build() {
  const server = new McpServer(
    { name: "weather", version: "2.1.0", title: "Weather" },
    { instructions: "Ask for a city.", capabilities: { logging: {} } },
  );

  server.registerTool(
    "temperature",
    {
      title: "Temperature",
      description: "How warm it is in a city.",
      inputSchema: z.object({ city: z.string() }),
      outputSchema: z.object({ city: z.string(), celsius: z.number() }),
      annotations: { readOnlyHint: true },
    },
    async ({ city }, ctx) => {
      await ctx.mcpReq.log("notice", `asked for ${city}`, "weather");
      if (!(city in cities)) throw new Error(`there is no ${city} here`);
      const progressToken = ctx.mcpReq._meta?.progressToken;
      if (progressToken !== undefined) {
        await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: 1, total: 2, message: "looked up" } });
      }
      const found = { city, celsius: cities[city] };
      return { content: [{ type: "text", text: `${found.celsius} °C` }], structuredContent: found };
    },
  );

  server.registerTool(
    "trip",
    {
      description: "Plans a trip, once it is known for how many.",
      inputSchema: z.object({ city: z.string(), days: z.number().int().min(1).default(2) }),
    },
    async ({ city, days }, ctx) => {
      const answers = ctx.mcpReq.inputResponses;
      if (answers === undefined) {
        return inputRequired({ inputRequests: { people: inputRequired.elicit({ message: `How many go to ${city}?`, requestedSchema: people }) } });
      }
      const content = acceptedContent<{ people: number }>(answers, "people");
      const text = content === undefined ? "nobody goes" : `${content.people} to ${city} for ${days} days`;
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
    { description: "What to pack.", argsSchema: z.object({ city: completable(z.string(), beginningWith) }) },
    ({ city }) => ({ messages: [{ role: "user", content: { type: "text", text: `What do I pack for ${city}?` } }] }),
  );

  return server;
}

export default createMcpHandler(build);
