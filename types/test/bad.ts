// What the runtime would refuse, or what would fail in a call. Each line must be refused by the types, too.
import type { Context, JsonSchema, Server, ServerModule, Tool } from "../bulkhead";

// @ts-expect-error a tool has a function `run`
export const noRun: Tool = { description: "Does nothing." };
// @ts-expect-error it must be a function
export const runIsText: Tool = { run: "return 1" };
// @ts-expect-error the key is `input`, not the protocol's `inputSchema`
export const wrongKey: Tool = { inputSchema: { type: "object" }, run: () => 1 };
// @ts-expect-error a description is a string
export const description: Tool = { description: 1, run: () => 1 };
// @ts-expect-error the input is of another type
export const input: Tool<{ price: number }> = { run: ({ prise }) => prise };
// @ts-expect-error the result is of another type
export const output: Tool<unknown, { a: number }> = { run: () => ({ a: "1" }) };
// @ts-expect-error also when it comes later
export const later: Tool<unknown, { a: number }> = { run: async () => ({ a: "1" }) };
// @ts-expect-error a bigint is not JSON
export const big: Tool = { run: () => 10n };
// @ts-expect-error neither is a symbol
export const symbol: Tool = { run: () => Symbol.iterator };

// @ts-expect-error in the list form a tool has a name
export const nameless: Server = { tools: [{ run: () => 1 }] };
// @ts-expect-error in the list form a resource has an address
export const unaddressed: Server = { resources: [{ read: () => 1 }] };
// @ts-expect-error a resource has a function `read`
export const noRead: Server = { resources: { "cfg://x": { get: () => 1 } } };
// @ts-expect-error a prompt has a function `get`
export const noGet: Server = { prompts: { hi: { run: () => 1 } } };
// @ts-expect-error `arguments` is a list
export const noList: Server = { prompts: { hi: { arguments: { who: {} }, get: () => 1 } } };
// @ts-expect-error a server has no such part
export const part: Server = { tool: {} };
// @ts-expect-error a version is a string
export const version: Server = { version: 1, tools: {} };
// @ts-expect-error a module's default export is a server or a function
export const text: ServerModule = "export default {}";

// @ts-expect-error suggestions are strings
export const suggestions: Server = { prompts: { p: { arguments: [{ name: "a", complete: () => [1] }], get: () => 1 } } };
// @ts-expect-error they are functions by variable
export const variables: Server = { resources: { "c://{x}": { complete: () => ["a"], read: () => 1 } } };
// @ts-expect-error an icon has an address
export const icon: Server = { icons: [{}], tools: {} };
// @ts-expect-error there is no such support
export const task: Tool = { execution: { taskSupport: "maybe" }, run: () => 1 };

// @ts-expect-error there is no such type
export const schema: JsonSchema = { type: "strng" };
// @ts-expect-error `required` lists names
export const required: JsonSchema = { properties: { a: { required: true } } };

export function uses(ctx: Context) {
  // @ts-expect-error progress is a number
  ctx.progress("half");
  // @ts-expect-error a context is frozen
  ctx.log = console.log;
  // @ts-expect-error MCP has no such level
  ctx.log.warn("careful");
  // @ts-expect-error a form has a schema
  ctx.elicit({ message: "Who?" });
  // @ts-expect-error only the host sends people to an address
  ctx.elicit({ mode: "url", message: "Who?", url: "https://example.com", elicitationId: "1", requestedSchema: {} });
  // @ts-expect-error a model is asked with messages
  ctx.sample({ maxTokens: 1 });
  // @ts-expect-error a key is a string
  ctx.roots({ key: 1 });
  // @ts-expect-error which resource
  ctx.notify.resourceUpdated();
  // @ts-expect-error there is no environment
  ctx.env;
}
