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
  version?: string;
  /** For the model: what the server is good for and how to use it. */
  instructions?: string;
  /** By name, or as a list of tools that have names. A name has 1 to 128 letters, digits, and `_ . / -`. */
  tools?: Readonly<Record<string, Tool>> | readonly NamedTool[];
  /** By address, or as a list of resources that have addresses. `{name}` in an address makes it a template. */
  resources?: Readonly<Record<string, Resource>> | readonly AddressedResource[];
  /** By name, or as a list of prompts that have names. */
  prompts?: Readonly<Record<string, Prompt>> | readonly NamedPrompt[];
}

/** A tool of the map form, where its key is its name. */
export interface Tool<Input = any, Output extends Result = Result> {
  title?: string;
  /** For the model: what it does and when to use it. */
  description?: string;
  /** Schema of the input, `{ type: "object" }` when it is left out. Shown to clients; not checked before `run`. */
  input?: JsonSchema;
  /** Schema of the result. Shown to clients; not checked after `run`. */
  output?: JsonSchema;
  annotations?: ToolAnnotations;
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
export interface Resource<Variable extends string = string> {
  /** The address when it is left out. */
  name?: string;
  title?: string;
  description?: string;
  mimeType?: string;
  read(asked: ResourceAsked<Variable>, ctx: Context): Result | Promise<Result>;
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
export interface Prompt<Input = any> {
  title?: string;
  description?: string;
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
}

/** What a handler gets beside its input. Frozen; one per call. */
export interface Context {
  /** Aborted when the caller has gone away while its compartment serves others, too. */
  readonly signal: AbortSignal;
  /** Logs a line: strings as they are, everything else as `console.log` would show it. */
  readonly log: (...values: unknown[]) => void;
  /** Reports progress. The numbers must be finite. */
  readonly progress: (progress: number, total?: number, message?: string) => void;
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
