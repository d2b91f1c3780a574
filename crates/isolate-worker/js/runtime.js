// Between the worker and a server's code. Evaluated once, in the base zygote, before any tenant's code;
// everything it needs later is captured here, so that tampering with globals breaks only the tamperer.
//
// native: done(id, text), fail(id, code, message), log(level, text), progress(json)
// web:    makeAbort(), formatError(error), inspect(value)
// Gives back what the worker calls: adopt(default export) → surface as JSON, call(…), abort(id).
(function runtime(native, web) {
  "use strict";

  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const { keys, freeze, defineProperties, setPrototypeOf } = Object;
  const { apply } = Reflect;
  const { isFinite: isFiniteNumber } = Number;
  // uncurry(method)(receiver, …args), made of builtins alone.
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const then = uncurry(Promise.prototype.then);
  const promiseResolve = uncurry(Promise.resolve);
  const NewPromise = Promise;
  // Of all that works with expressions only this one looks up no method that tenants can replace.
  const exec = uncurry(RegExp.prototype.exec);
  const slice = uncurry(String.prototype.slice);
  const push = uncurry(Array.prototype.push);
  const mapGet = uncurry(Map.prototype.get);
  const mapSet = uncurry(Map.prototype.set);
  const mapDelete = uncurry(Map.prototype.delete);
  const decode = decodeURIComponent;
  const NewMap = Map;
  const NewRegExp = RegExp;
  const RefusedExport = class extends TypeError {};

  const NAME = /^[A-Za-z0-9_.\/-]{1,128}$/;

  // --- the surface -------------------------------------------------------------------------------------------

  function refuse(message) {
    throw new RefusedExport(message);
  }

  function text(value, what) {
    if (value === undefined) return undefined;
    if (typeof value !== "string") refuse(`${what} must be a string`);
    return value;
  }

  function plain(value, what) {
    if (value === undefined) return undefined;
    if (typeof value !== "object" || value === null || isArray(value)) refuse(`${what} must be an object`);
    return value;
  }

  // Both `{ name: {…} }` and `[{ name, … }]` are taken.
  function entries(collection, what, key) {
    if (collection === undefined) return [];
    if (typeof collection !== "object" || collection === null) refuse(`\`${what}\` must be an object`);
    const list = [];
    if (isArray(collection)) {
      for (let i = 0; i < collection.length; i++) {
        const entry = plain(collection[i], `\`${what}[${i}]\``) ?? refuse(`\`${what}[${i}]\` is missing`);
        push(list, [text(entry[key], `\`${what}[${i}].${key}\``) ?? refuse(`\`${what}[${i}]\` has no \`${key}\``), entry]);
      }
    } else {
      const names = keys(collection);
      for (let i = 0; i < names.length; i++) {
        push(list, [names[i], plain(collection[names[i]], `\`${what}.${names[i]}\``) ?? refuse(`\`${what}.${names[i]}\` is missing`)]);
      }
    }
    return list;
  }

  function handler(entry, method, where) {
    const run = entry[method];
    if (typeof run !== "function") refuse(`${where} has no function \`${method}\``);
    return (input, ctx) => apply(run, entry, [input, ctx]);
  }

  function unique(map, name, where) {
    if (mapGet(map, name) !== undefined) refuse(`${where} is there twice`);
  }

  function readTools(server, tools) {
    const list = [];
    const all = entries(server.tools, "tools", "name");
    for (let i = 0; i < all.length; i++) {
      const { 0: name, 1: entry } = all[i];
      const where = `tool \`${name}\``;
      if (exec(NAME, name) === null) refuse(`${where}: a name has 1 to 128 letters, digits, and _ . / -`);
      unique(tools, name, where);
      mapSet(tools, name, handler(entry, "run", where));
      push(list, {
        name,
        title: text(entry.title, `${where}: \`title\``),
        description: text(entry.description, `${where}: \`description\``),
        inputSchema: plain(entry.input, `${where}: \`input\``) ?? { type: "object" },
        outputSchema: plain(entry.output, `${where}: \`output\``),
        annotations: plain(entry.annotations, `${where}: \`annotations\``),
      });
    }
    return list;
  }

  const VARIABLE = /\{([A-Za-z0-9_]+)\}/;
  const SPECIAL = /[.*+?^${}()|[\]\\]/;

  // `file://{name}` → an expression and its variables; undefined when the address has none.
  function templatePattern(template) {
    const names = [];
    let source = "^";
    let rest = template;
    for (let match = exec(VARIABLE, rest); ; match = exec(VARIABLE, rest)) {
      const literal = match === null ? rest : slice(rest, 0, match.index);
      for (let i = 0; i < literal.length; i++) source += (exec(SPECIAL, literal[i]) === null ? "" : "\\") + literal[i];
      if (match === null) break;
      push(names, match[1]);
      source += "([^/?#]+)";
      rest = slice(rest, match.index + match[0].length);
    }
    return names.length === 0 ? undefined : { names, pattern: new NewRegExp(source + "$") };
  }

  function readResources(server, resources, templates) {
    const fixed = [];
    const patterns = [];
    const all = entries(server.resources, "resources", "uri");
    for (let i = 0; i < all.length; i++) {
      const { 0: uri, 1: entry } = all[i];
      const where = `resource \`${uri}\``;
      const read = handler(entry, "read", where);
      const described = {
        name: text(entry.name, `${where}: \`name\``) ?? uri,
        title: text(entry.title, `${where}: \`title\``),
        description: text(entry.description, `${where}: \`description\``),
        mimeType: text(entry.mimeType, `${where}: \`mimeType\``),
      };
      const template = templatePattern(uri);
      if (template !== undefined) {
        push(templates, { ...template, read });
        push(patterns, { uriTemplate: uri, ...described });
      } else {
        unique(resources, uri, where);
        mapSet(resources, uri, read);
        push(fixed, { uri, ...described });
      }
    }
    return { fixed, patterns };
  }

  function readPrompts(server, prompts) {
    const list = [];
    const all = entries(server.prompts, "prompts", "name");
    for (let i = 0; i < all.length; i++) {
      const { 0: name, 1: entry } = all[i];
      const where = `prompt \`${name}\``;
      unique(prompts, name, where);
      mapSet(prompts, name, handler(entry, "get", where));
      const described = entry.arguments === undefined || isArray(entry.arguments);
      if (!described) refuse(`${where}: \`arguments\` must be an array`);
      push(list, {
        name,
        title: text(entry.title, `${where}: \`title\``),
        description: text(entry.description, `${where}: \`description\``),
        arguments: entry.arguments,
      });
    }
    return list;
  }

  const servers = [];

  function adopt(exported) {
    if (typeof exported === "function") exported = { tools: { run: { run: exported } } };
    if (typeof exported !== "object" || exported === null) {
      refuse("the module has no default export that is a server: `export default { tools: { … } }`");
    }
    const server = { tools: new NewMap(), resources: new NewMap(), templates: [], prompts: new NewMap(), script: undefined };
    const tools = readTools(exported, server.tools);
    const { fixed, patterns } = readResources(exported, server.resources, server.templates);
    const prompts = readPrompts(exported, server.prompts);
    if (tools.length + fixed.length + patterns.length + prompts.length === 0) {
      refuse("the server offers no tool, resource or prompt");
    }
    const surface = stringify({
      name: text(exported.name, "`name`"),
      version: text(exported.version, "`version`"),
      instructions: text(exported.instructions, "`instructions`"),
      tools,
      resources: fixed,
      resourceTemplates: patterns,
      prompts,
    });
    push(servers, server);
    return surface;
  }

  // A bare script has one tool, and answers to whatever it is called.
  function adoptScript(run) {
    const surface = adopt({ tools: { run: { description: "A script.", run } } });
    const server = servers[servers.length - 1];
    server.script = mapGet(server.tools, "run");
    return surface;
  }

  // --- calls -------------------------------------------------------------------------------------------------

  // Signals by the call's number, made when a tool asks for its own, which few do. `true` for a call that was aborted before.
  const signals = new NewMap();
  let asked = false;

  const log = freeze((...values) => {
    let line = "";
    for (let i = 0; i < values.length; i++) {
      line += (i === 0 ? "" : " ") + (typeof values[i] === "string" ? values[i] : web.inspect(values[i]));
    }
    native.log("info", line);
  });

  const progress = freeze((done, total, message) => {
    if (typeof done !== "number" || !isFiniteNumber(done)) throw new TypeError("progress must be a finite number");
    if (total !== undefined && (typeof total !== "number" || !isFiniteNumber(total))) throw new TypeError("total must be a finite number");
    if (message !== undefined && typeof message !== "string") throw new TypeError("message must be a string");
    native.progress(stringify({ __proto__: null, progress: done, total, message }));
  });

  function signalOf(id) {
    const known = mapGet(signals, id);
    if (known !== undefined && known !== true) return known.signal;
    const made = web.makeAbort();
    if (known === true) made.abort();
    mapSet(signals, id, made);
    asked = true;
    return made.signal;
  }

  // What a tool is given. Its own, so that making one costs little: the methods are shared.
  class Context {
    #id;
    constructor(id) {
      this.#id = id;
    }
    get signal() {
      return signalOf(this.#id);
    }
  }
  defineProperties(Context.prototype, { log: { value: log, enumerable: true }, progress: { value: progress, enumerable: true } });
  delete Context.prototype.constructor;
  freeze(setPrototypeOf(Context.prototype, null));

  function findHandler(server, operation, name) {
    if (operation === "tool") return server.script ?? mapGet(server.tools, name);
    if (operation === "prompt") return mapGet(server.prompts, name);
    const fixed = mapGet(server.resources, name);
    if (fixed !== undefined) return (_input, ctx) => fixed({ __proto__: null, uri: name, variables: {} }, ctx);
    for (let i = 0; i < server.templates.length; i++) {
      const { names, pattern, read } = server.templates[i];
      const match = exec(pattern, name);
      if (match === null) continue;
      const variables = {};
      try {
        for (let j = 0; j < names.length; j++) variables[names[j]] = decode(match[j + 1]);
      } catch {
        continue; // a broken escape is no address of ours
      }
      return (_input, ctx) => read({ __proto__: null, uri: name, variables }, ctx);
    }
    return undefined;
  }

  function succeed(id, value) {
    let json;
    try {
      json = stringify(value === undefined ? null : value);
      if (json === undefined) throw new TypeError(`the result is not JSON: a ${typeof value}`);
    } catch (error) {
      return fail(id, error);
    }
    if (asked) mapDelete(signals, id);
    native.done(id, json);
  }

  function fail(id, error) {
    if (asked) mapDelete(signals, id);
    native.fail(id, "tool_error", web.formatError(error));
  }

  // Trusted code in place of a tenant's, by which a fresh process rehearses a call before it is sealed.
  const rehearsal = { __proto__: null, tools: new NewMap(), script: undefined };
  mapSet(rehearsal.tools, "rehearse", async (input, ctx) => {
    try {
      return { answer: absent.value, log: ctx.log };
    } catch {
      return { double: input.price * 2, text: `a${input.price}`, list: [1, "two", null] };
    }
  });

  function call(id, operation, name, index, inputText) {
    const server = index < 0 ? rehearsal : servers[index];
    const run = server === undefined ? undefined : findHandler(server, operation, name);
    if (run === undefined) return native.fail(id, "unknown_tool", `there is no ${operation} \`${name}\``);
    let input;
    try {
      input = parse(inputText);
    } catch (error) {
      return native.fail(id, "bad_arguments", `the arguments are not JSON: ${error.message}`);
    }
    let value;
    try {
      value = run(input, freeze(new Context(id)));
      // What is no promise needs none.
      if ((typeof value !== "object" && typeof value !== "function") || value === null || typeof value.then !== "function") {
        return succeed(id, value);
      }
    } catch (error) {
      return fail(id, error);
    }
    then(promiseResolve(NewPromise, value), (value) => succeed(id, value), (error) => fail(id, error));
  }

  function abort(id) {
    const known = mapGet(signals, id);
    if (known === undefined) {
      mapSet(signals, id, true);
      asked = true;
    } else if (known !== true) {
      known.abort();
    }
  }

  return freeze({ __proto__: null, adopt, adoptScript, call, abort });
});
