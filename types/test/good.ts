// What an author may write. scripts/types-test.sh checks that all of it is accepted.
import type { Context, NamedTool, Prompt, Resource, RunFunction, Server, ServerModule, Tool } from "../bulkhead";

interface Price {
  price: number;
}
interface Doubled {
  doublePrice: number;
}

const doublePrice: Tool<Price, Doubled> = {
  title: "Double",
  description: "Doubles a price.",
  input: { type: "object", properties: { price: { type: "number", minimum: 0 } }, required: ["price"], "x-own": 1 },
  output: { type: "object", properties: { doublePrice: { type: "number" } } },
  annotations: { readOnlyHint: true, title: "Double" },
  async run({ price }, ctx) {
    ctx.log("doubling", price, { any: ["value"] });
    ctx.progress(1);
    ctx.progress(1, 2);
    ctx.progress(1, 2, "half");
    ctx.progress(1, undefined, "half");
    ctx.log.warning("careful", { any: 1 });
    const { signal } = ctx;
    await fetch("https://example.com", { signal });
    return { doublePrice: price * 2 };
  },
};

const site: Resource = { mimeType: "application/json", read: ({ uri }) => ({ uri }) };
const page: Resource<"folder" | "name"> = {
  read({ uri, variables }) {
    const known: string = variables.folder + variables.name;
    return [uri, known];
  },
};
const greet: Prompt<{ who: string }> = {
  title: "Greet",
  arguments: [{ name: "who", title: "Who", description: "Whom to greet.", required: true }],
  get: ({ who }) => `Say hello to ${who}.`,
};

export const asMaps: Server = {
  name: "shop",
  version: "1.0.0",
  instructions: "Prices in euros.",
  tools: { double_price: doublePrice, nothing: { run() {} }, later: { run: async () => null } },
  resources: { "cfg://site": site, "file://{folder}/{name}": page },
  prompts: { greet },
};

const named: NamedTool<Price> = { name: "a/b", run: ({ price }) => price };
export const asLists = {
  tools: [named, { name: "c", run: (input, ctx) => ctx.signal.aborted || input.any }],
  resources: [{ uri: "cfg://site", name: "site", read: () => "text" }],
  prompts: [{ name: "hi", get: () => ({ messages: [] }) }],
} satisfies Server;

export const frozen = { tools: { run: { input: { enum: [1, "two", null] }, run: () => 1 } } } as const satisfies Server;

export const alone: RunFunction<Price> = (input: Price, ctx: Context) => ctx.log(input.price);
export const modules: ServerModule[] = [asMaps, asLists, alone, (input) => input];

const asks: Tool = {
  icons: [{ src: "https://example.com/i.png", sizes: ["48x48"] }],
  _meta: { "example.com/own": 1 },
  execution: { taskSupport: "optional" },
  async run(_input, { elicit, sample, roots, client, notify }) {
    const { capabilities, name } = await client();
    if (!capabilities.elicitation) return name;
    const [who, capital, where] = await Promise.all([
      elicit<{ name: string }>({
        key: "who",
        message: "Who are you?",
        requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      }),
      sample({ messages: [{ role: "user", content: { type: "text", text: "Capital of France?" } }], maxTokens: 10 }),
      roots(),
    ]);
    await notify.toolsChanged();
    await notify.resourceUpdated("cfg://site");
    const given: string | undefined = who.content?.name;
    return [who.action, given, capital.content.text, where.roots[0]?.uri];
  },
};

export const described: Server = {
  title: "Shop",
  websiteUrl: "https://example.com",
  icons: [{ src: "https://example.com/i.png" }],
  tools: { asks },
  resources: {
    "cfg://logo": { size: 3, annotations: { audience: ["user"], priority: 1 }, read: () => new Uint8Array([1, 2, 3]) },
    "cfg://{city}": { complete: { city: (value) => [value] }, read: () => ({ blob: new Uint8Array(1), mimeType: "image/png" }) },
  },
  prompts: {
    trip: {
      arguments: [
        { name: "country", complete: async () => ({ values: ["France"], total: 1, hasMore: false }) },
        { name: "city", complete: (value, { arguments: { country } }, ctx) => (ctx.log.debug(country), [value]) },
      ],
      get: () => "…",
    },
  },
};
