/**
 * What a server's module may export, for editors and type checkers. Nothing is imported at run time:
 *
 *     /** @type {import("./types/bulkhead").Server} *\/
 *     export default { tools: { … } };
 *
 * or, in TypeScript that is compiled to JavaScript before it is deployed:
 *
 *     import type { Server } from "./types/bulkhead";
 *     export default { tools: { … } } satisfies Server;
 *
 * How it all behaves: docs/authoring.md. The web-standard globals come from TypeScript's own library:
 * `"lib": ["esnext", "webworker"]`.
 */

/** The default export of a module: a server, or one function, which becomes the tool `run`. */
export type ServerModule = Server | RunFunction;

/** A server. It has at least one tool, resource or prompt. */
export interface Server {
  name?: string;
  title?: string;
  version?: string;
  websiteUrl?: string;
  icons?: readonly Icon[];
  /** For the model: what the server is good for and how to use it. */
  instructions?: string;
  /** By name, or as a list of tools that have names. A name has 1 to 128 letters, digits, and `_ . / -`. */
  tools?: Readonly<Record<string, Tool>> | readonly NamedTool[];
  /** By address, or as a list of resources that have addresses. `{name}` in an address makes it a template. */
  resources?: Readonly<Record<string, Resource>> | readonly AddressedResource[];
  /** By name, or as a list of prompts that have names. */
  prompts?: Readonly<Record<string, Prompt>> | readonly NamedPrompt[];
}

/** What tools, resources and prompts have in common. */
export interface Described {
  title?: string;
  /** For the model: what it is and when to use it. */
  description?: string;
  icons?: readonly Icon[];
  /** Metadata for clients, under names with a prefix of your own. */
  _meta?: { readonly [key: string]: unknown };
}

/** An image, as MCP has it. */
export interface Icon {
  src: string;
  mimeType?: string;
  sizes?: readonly string[];
  theme?: "light" | "dark";
}

/** A tool of the map form, where its key is its name. */
export interface Tool<Input = any, Output extends Result = Result> extends Described {
  /** Schema of the input, `{ type: "object" }` when it is left out. Shown to clients; not checked before `run`. */
  input?: JsonSchema;
  /** Schema of the result. Shown to clients; not checked after `run`. */
  output?: JsonSchema;
  annotations?: ToolAnnotations;
  /** Whether clients may, must or must not run it as a task of MCP's extension for tasks. */
  execution?: { taskSupport?: "forbidden" | "optional" | "required"; [key: string]: unknown };
  /** Called as a method of the tool. What it returns is the result; what it throws is the error. */
  run(input: Input, ctx: Context): Output | Promise<Output>;
}

/** A tool of the list form. */
export interface NamedTool<Input = any, Output extends Result = Result> extends Tool<Input, Output> {
  name: string;
}

/** A tool that is nothing but its function. */
export type RunFunction<Input = any, Output extends Result = Result> = (
  input: Input,
  ctx: Context,
) => Output | Promise<Output>;

/** A resource of the map form, where its key is its address: `cfg://site`, or a template: `file://{folder}/{name}`. */
export interface Resource<Variable extends string = string> extends Described {
  /** The address when it is left out. */
  name?: string;
  mimeType?: string;
  annotations?: ContentAnnotations;
  /** In bytes. Of an address without variables. */
  size?: number;
  /** For a template: functions that suggest values, by variable. */
  complete?: { readonly [name in Variable]?: Complete };
  /** Bytes as they are, or as `blob`, become base64. */
  read(asked: ResourceAsked<Variable>, ctx: Context): Result | Promise<Result>;
}

/** Hints on who content is for, and how much it matters, as MCP has them. */
export interface ContentAnnotations {
  audience?: readonly ("user" | "assistant")[];
  priority?: number;
  lastModified?: string;
  [hint: string]: unknown;
}

/** A resource of the list form. */
export interface AddressedResource<Variable extends string = string> extends Resource<Variable> {
  uri: string;
}

export interface ResourceAsked<Variable extends string = string> {
  /** The address as it was asked for. */
  uri: string;
  /** The decoded values of a template's variables; empty for a plain address. */
  variables: { [name in Variable]: string };
}

/** A prompt of the map form, where its key is its name. */
export interface Prompt<Input = any> extends Described {
  arguments?: readonly PromptArgument[];
  get(input: Input, ctx: Context): Result | Promise<Result>;
}

/** A prompt of the list form. */
export interface NamedPrompt<Input = any> extends Prompt<Input> {
  name: string;
}

export interface PromptArgument {
  name: string;
  title?: string;
  description?: string;
  required?: boolean;
  /** Suggests values while somebody types. Not shown to clients. */
  complete?: Complete;
}

/** Suggests values for what somebody has typed so far; a client is shown the first 100. */
export type Complete = (
  value: string,
  asked: {
    /** What is filled in already, where the client tells. */
    arguments: { readonly [name: string]: string };
  },
  ctx: Context,
) => Suggestions | Promise<Suggestions>;

export type Suggestions = readonly string[] | { values: readonly string[]; total?: number; hasMore?: boolean };

/** What a handler gets beside its input. Frozen; one per call, and for that call alone. */
export interface Context {
  /** Aborted when the caller has gone away while its compartment serves others, too. */
  readonly signal: AbortSignal;
  /** Logs a line with level `info`, or with the level that is named. */
  readonly log: Log & { readonly [level in LogLevel]: Log };
  /** Reports progress. The numbers must be finite. */
  readonly progress: (progress: number, total?: number, message?: string) => void;
  /**
   * Asks the person behind the client, with a form that names this server and asks for no credentials. Up to an ask a
   * handler must be repeatable: it may be run again from the start, and is given the same answers.
   */
  readonly elicit: <Content = { [field: string]: string | number | boolean | string[] }>(
    ask: ElicitForm,
  ) => Promise<Elicited<Content>>;
  /** Asks the client's model. Repeatable, as `elicit`. */
  readonly sample: (ask: Sample) => Promise<Sampled>;
  /** Asks the client for its roots. Repeatable, as `elicit`. */
  readonly roots: (ask?: Keyed) => Promise<{ roots: { uri: string; name?: string; [key: string]: unknown }[] }>;
  /** Who called, and what can be asked of it. */
  readonly client: () => Promise<Client>;
  /** Tells the clients of this server that something has changed. */
  readonly notify: Notify;
}

/** Strings as they are, everything else as `console.log` would show it. */
export type Log = (...values: unknown[]) => void;

export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** What a call asks has a key of its own, `input-1`, `input-2` … when it is left out. */
export interface Keyed {
  /** 1 to 128 letters, digits, and `_ . / -`. */
  key?: string;
}

export interface ElicitForm extends Keyed {
  mode?: "form";
  message: string;
  /** A flat object of strings, numbers, booleans and choices. */
  requestedSchema: JsonSchema;
  [param: string]: unknown;
}

export interface Elicited<Content> {
  action: "accept" | "decline" | "cancel";
  /** Of a form that was accepted. As the client sent it: check what you rely on. */
  content?: Content;
}

/** The params of `sampling/createMessage`. */
export interface Sample extends Keyed {
  messages: readonly { role: "user" | "assistant"; content: unknown }[];
  maxTokens: number;
  systemPrompt?: string;
  [param: string]: unknown;
}

export interface Sampled {
  role: "user" | "assistant";
  content: any;
  model: string;
  stopReason?: string;
}

export interface Client {
  name?: string;
  version?: string;
  protocolVersion?: string;
  capabilities: { readonly elicitation?: object; readonly sampling?: object; readonly roots?: object; readonly [name: string]: unknown };
}

export interface Notify {
  toolsChanged(): Promise<void>;
  promptsChanged(): Promise<void>;
  resourcesChanged(): Promise<void>;
  resourceUpdated(uri: string): Promise<void>;
}

/** What a question, `client` or `notify` is rejected with when the host refuses. */
export interface Refusal extends Error {
  code: string;
}

/**
 * What `JSON.stringify` makes text of; nothing at all becomes `null`. A bigint, a symbol or a function is no result.
 * As a promise is an object, too, this alone does not check what an async function gives: name an `Output`.
 */
export type Result = object | string | number | boolean | null | undefined | void;

/** Hints for clients, as MCP has them. */
export interface ToolAnnotations {
  title?: string;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
  [hint: string]: unknown;
}

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [key: string]: JsonValue };

export type JsonTypeName = "object" | "array" | "string" | "number" | "integer" | "boolean" | "null";

/** JSON Schema 2020-12: the usual keywords with their types, and any other. */
export interface JsonSchema {
  type?: JsonTypeName | readonly JsonTypeName[];
  title?: string;
  description?: string;
  default?: JsonValue;
  examples?: readonly JsonValue[];
  enum?: readonly JsonValue[];
  const?: JsonValue;
  format?: string;
  deprecated?: boolean;

  properties?: { readonly [name: string]: JsonSchema | boolean };
  patternProperties?: { readonly [pattern: string]: JsonSchema | boolean };
  additionalProperties?: JsonSchema | boolean;
  propertyNames?: JsonSchema | boolean;
  required?: readonly string[];
  minProperties?: number;
  maxProperties?: number;

  items?: JsonSchema | boolean;
  prefixItems?: readonly (JsonSchema | boolean)[];
  contains?: JsonSchema | boolean;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;

  minLength?: number;
  maxLength?: number;
  pattern?: string;

  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;

  allOf?: readonly (JsonSchema | boolean)[];
  anyOf?: readonly (JsonSchema | boolean)[];
  oneOf?: readonly (JsonSchema | boolean)[];
  not?: JsonSchema | boolean;

  $ref?: string;
  $defs?: { readonly [name: string]: JsonSchema | boolean };
  [keyword: string]: unknown;
}
