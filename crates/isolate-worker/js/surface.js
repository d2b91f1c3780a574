// What a server's default export says of itself: its handlers, and the description that clients are shown.
// Evaluated once, in the base zygote, before any tenant's code; what it needs later is captured here.
//
// Gives read(exported, listed?) → { server, surface }: the handlers, and the description as JSON.
// `listed` is what a server that finds its resources itself says of them.
(function surface() {
  "use strict";

  const { stringify } = JSON;
  const { isArray } = Array;
  const { isSafeInteger } = Number;
  const { keys, setPrototypeOf } = Object;
  const { apply } = Reflect;
  // uncurry(method)(receiver, …args), made of builtins alone.
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  // Of all that works with expressions only this one looks up no method that tenants can replace.
  const exec = uncurry(RegExp.prototype.exec);
  const slice = uncurry(String.prototype.slice);
  const push = uncurry(Array.prototype.push);
  const mapGet = uncurry(Map.prototype.get);
  const mapSet = uncurry(Map.prototype.set);
  const NewMap = Map;
  const NewRegExp = RegExp;
  const RefusedExport = class extends TypeError {};

  // Without a prototype, so that nobody's accessor sees it filled.
  const empty = () => setPrototypeOf([], null);

  const NAME = /^[A-Za-z0-9_.\/-]{1,128}$/;

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

  function list(value, what) {
    if (value !== undefined && !isArray(value)) refuse(`${what} must be an array`);
    return value;
  }

  function size(value, what) {
    if (value !== undefined && !(isSafeInteger(value) && value >= 0)) refuse(`${what} must be a number of bytes`);
    return value;
  }

  // What tools, resources and prompts have in common.
  function described(entry, where) {
    return {
      title: text(entry.title, `${where}: \`title\``),
      description: text(entry.description, `${where}: \`description\``),
      icons: list(entry.icons, `${where}: \`icons\``),
      _meta: plain(entry._meta, `${where}: \`_meta\``),
    };
  }

  // Both `{ name: {…} }` and `[{ name, … }]` are taken.
  function entries(collection, what, key) {
    if (collection === undefined) return empty();
    if (typeof collection !== "object" || collection === null) refuse(`\`${what}\` must be an object`);
    const found = empty();
    if (isArray(collection)) {
      for (let i = 0; i < collection.length; i++) {
        const entry = plain(collection[i], `\`${what}[${i}]\``) ?? refuse(`\`${what}[${i}]\` is missing`);
        push(found, [text(entry[key], `\`${what}[${i}].${key}\``) ?? refuse(`\`${what}[${i}]\` has no \`${key}\``), entry]);
      }
    } else {
      const names = keys(collection);
      for (let i = 0; i < names.length; i++) {
        push(found, [names[i], plain(collection[names[i]], `\`${what}.${names[i]}\``) ?? refuse(`\`${what}.${names[i]}\` is missing`)]);
      }
    }
    return found;
  }

  function handler(entry, method, where) {
    const run = entry[method];
    if (typeof run !== "function") refuse(`${where} has no function \`${method}\``);
    return (input, ctx) => apply(run, entry, [input, ctx]);
  }

  function unique(map, name, where) {
    if (mapGet(map, name) !== undefined) refuse(`${where} is there twice`);
  }

  function readTools(exported, tools) {
    const shown = empty();
    const all = entries(exported.tools, "tools", "name");
    for (let i = 0; i < all.length; i++) {
      const { 0: name, 1: entry } = all[i];
      const where = `tool \`${name}\``;
      if (exec(NAME, name) === null) refuse(`${where}: a name has 1 to 128 letters, digits, and _ . / -`);
      unique(tools, name, where);
      mapSet(tools, name, handler(entry, "run", where));
      push(shown, {
        name,
        ...described(entry, where),
        inputSchema: plain(entry.input, `${where}: \`input\``) ?? { type: "object" },
        outputSchema: plain(entry.output, `${where}: \`output\``),
        annotations: plain(entry.annotations, `${where}: \`annotations\``),
        execution: plain(entry.execution, `${where}: \`execution\``),
      });
    }
    return shown;
  }

  const VARIABLE = /\{([A-Za-z0-9_]+)\}/;
  const SPECIAL = /[.*+?^${}()|[\]\\]/;

  // `file://{name}` → an expression and its variables; undefined when the address has none.
  function templatePattern(template) {
    const names = empty();
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

  // The functions that suggest values, by what they suggest them for; `holder` is what they are methods of.
  function completer(completers, name, holder, complete, where) {
    if (complete === undefined) return;
    if (typeof complete !== "function") refuse(`${where}: \`complete\` must be a function`);
    mapSet(completers, name, (value, asked, ctx) => apply(complete, holder, [value, asked, ctx]));
  }

  function variableCompleters(entry, variables, where) {
    const completers = new NewMap();
    const given = plain(entry.complete, `${where}: \`complete\``);
    for (let i = 0; given !== undefined && i < variables.length; i++) {
      completer(completers, variables[i], given, given[variables[i]], `${where}, variable \`${variables[i]}\``);
    }
    return completers;
  }

  function readResources(exported, server) {
    const resources = empty();
    const resourceTemplates = empty();
    const all = entries(exported.resources, "resources", "uri");
    for (let i = 0; i < all.length; i++) {
      const { 0: uri, 1: entry } = all[i];
      const where = `resource \`${uri}\``;
      const read = handler(entry, "read", where);
      const template = templatePattern(uri);
      const shown = {
        [template === undefined ? "uri" : "uriTemplate"]: uri,
        name: text(entry.name, `${where}: \`name\``) ?? uri,
        ...described(entry, where),
        mimeType: text(entry.mimeType, `${where}: \`mimeType\``),
        annotations: plain(entry.annotations, `${where}: \`annotations\``),
      };
      if (template !== undefined) {
        push(server.templates, { ...template, uri, read, completers: variableCompleters(entry, template.names, where) });
        push(resourceTemplates, shown);
      } else {
        unique(server.resources, uri, where);
        mapSet(server.resources, uri, read);
        push(resources, { ...shown, size: size(entry.size, `${where}: \`size\``) });
      }
    }
    return { resources, resourceTemplates };
  }

  function listedResources(entries, key) {
    const shown = empty();
    for (let i = 0; i < entries.length; i++) {
      const entry = plain(entries[i], `\`${key}[${i}]\``) ?? refuse(`\`${key}[${i}]\` is missing`);
      const uri = text(entry[key], `\`${key}\` of a resource`) ?? refuse(`a resource has no \`${key}\``);
      const where = `resource \`${uri}\``;
      push(shown, {
        [key]: uri,
        name: text(entry.name, `${where}: \`name\``) ?? uri,
        ...described(entry, where),
        mimeType: text(entry.mimeType, `${where}: \`mimeType\``),
        annotations: plain(entry.annotations, `${where}: \`annotations\``),
        size: key === "uri" ? size(entry.size, `${where}: \`size\``) : undefined,
      });
    }
    return shown;
  }

  // Functions within `parameters` are no JSON, so they do not show.
  function argumentCompleters(parameters, where) {
    const completers = new NewMap();
    for (let i = 0; parameters !== undefined && i < parameters.length; i++) {
      const parameter = parameters[i];
      if (typeof parameter !== "object" || parameter === null) refuse(`${where}: \`arguments[${i}]\` must be an object`);
      const name = text(parameter.name, `${where}: \`arguments[${i}].name\``) ?? refuse(`${where}: \`arguments[${i}]\` has no \`name\``);
      completer(completers, name, parameter, parameter.complete, `${where}, argument \`${name}\``);
    }
    return completers;
  }

  function readPrompts(exported, server) {
    const shown = empty();
    const all = entries(exported.prompts, "prompts", "name");
    for (let i = 0; i < all.length; i++) {
      const { 0: name, 1: entry } = all[i];
      const where = `prompt \`${name}\``;
      unique(server.prompts, name, where);
      const parameters = list(entry.arguments, `${where}: \`arguments\``);
      mapSet(server.prompts, name, handler(entry, "get", where));
      mapSet(server.completers, name, argumentCompleters(parameters, where));
      push(shown, { name, ...described(entry, where), arguments: parameters });
    }
    return shown;
  }

  const mapSize = uncurry(Object.getOwnPropertyDescriptor(Map.prototype, "size").get);

  function completes(server, prompts) {
    for (let i = 0; i < prompts.length; i++) {
      if (mapSize(mapGet(server.completers, prompts[i].name)) > 0) return true;
    }
    for (let i = 0; i < server.templates.length; i++) {
      if (mapSize(server.templates[i].completers) > 0) return true;
    }
    return undefined;
  }

  function read(exported, listed) {
    if (typeof exported === "function") exported = { tools: { run: { run: exported } } };
    if (typeof exported !== "object" || exported === null) {
      refuse("the module has no default export that is a server: `export default { tools: { … } }`");
    }
    const server = {
      tools: new NewMap(),
      resources: new NewMap(),
      templates: empty(),
      prompts: new NewMap(),
      // By the prompt's name, then by the argument's.
      completers: new NewMap(),
      script: undefined,
      // Of a server that finds resources and suggestions itself.
      read: undefined,
      complete: undefined,
    };
    const tools = readTools(exported, server.tools);
    const { resources, resourceTemplates } =
      listed === undefined
        ? readResources(exported, server)
        : {
            resources: listedResources(listed.resources, "uri"),
            resourceTemplates: listedResources(listed.templates, "uriTemplate"),
          };
    const prompts = readPrompts(exported, server);
    if (tools.length + resources.length + resourceTemplates.length + prompts.length === 0) {
      refuse("the server offers no tool, resource or prompt");
    }
    const surface = stringify({
      name: text(exported.name, "`name`"),
      title: text(exported.title, "`title`"),
      version: text(exported.version, "`version`"),
      websiteUrl: text(exported.websiteUrl, "`websiteUrl`"),
      icons: list(exported.icons, "`icons`"),
      instructions: text(exported.instructions, "`instructions`"),
      tools,
      resources,
      resourceTemplates,
      prompts,
      completions: listed === undefined ? completes(server, prompts) : listed.completions,
    });
    return { server, surface };
  }

  return { __proto__: null, read };
});
