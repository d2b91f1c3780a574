// Between the worker and a server's code. Evaluated once, in the base zygote, before any tenant's code;
// everything it needs later is captured here, so that tampering with globals breaks only the tamperer.
//
// native:  done(id, text), fail(id, code, message), log(level, text), progress(json)
// web:     makeAbort(), formatError(error), inspect(value)
// surface: surface.js, what reads a default export
// client:  client.js, what a call may have of its client
// rpc:     rpc.js, the client of servers that speak the protocol themselves
// sdk, handler: sdk.js and handler.js, how such servers are spoken to
// Gives back what the worker calls: adopt(default export) → surface as JSON or the promise of it, call(…), abort(id).
(function runtime(native, web, surface, client, rpc, sdk, handler) {
  "use strict";

  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const { freeze, defineProperties, setPrototypeOf } = Object;
  const { isFinite: isFiniteNumber } = Number;
  // uncurry(method)(receiver, …args), made of builtins alone.
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const then = uncurry(Promise.prototype.then);
  const promiseResolve = uncurry(Promise.resolve);
  const NewPromise = Promise;
  const exec = uncurry(RegExp.prototype.exec);
  const push = uncurry(Array.prototype.push);
  const mapGet = uncurry(Map.prototype.get);
  const mapSet = uncurry(Map.prototype.set);
  const mapDelete = uncurry(Map.prototype.delete);
  const decode = decodeURIComponent;
  const NewMap = Map;
  const NewTypeError = TypeError;
  const NewBytes = Uint8Array;
  const toBase64 = uncurry(Uint8Array.prototype.toBase64);
  const getter = (object, name) => uncurry(Object.getOwnPropertyDescriptor(object, name).get);
  const typedArrayTag = getter(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag);
  const bufferLength = getter(ArrayBuffer.prototype, "byteLength");

  // Without a prototype, so that nobody's accessor sees it filled.
  const empty = () => setPrototypeOf([], null);
  const servers = empty();

  // The face of a server that speaks the protocol itself; undefined for one that is described by its export.
  function faceOf(exported) {
    if ((typeof exported !== "object" && typeof exported !== "function") || exported === null) return undefined;
    if (exported.tools !== undefined || exported.resources !== undefined || exported.prompts !== undefined) return undefined;
    return sdk.recognises(exported) ? sdk : handler.recognises(exported) ? handler : undefined;
  }

  // `again` gives what the server shows by then, or the promise of it.
  function keep({ server, surface: shown }, again) {
    server.shown = shown;
    server.again = again;
    server.telling = undefined;
    push(servers, server);
    return shown;
  }

  function adoptMade(exported) {
    const face = faceOf(exported);
    if (face !== undefined) return then(face.adopt(exported), ({ read, again }) => keep(read, again));
    return keep(surface.read(exported), () => surface.read(exported).surface);
  }

  function adopt(exported) {
    // Any other function is a tool. It is told what SDKs tell such functions: the era of the protocol.
    if (typeof exported !== "function" || exported.name !== "createServer") return adoptMade(exported);
    return then(promiseResolve(NewPromise, exported({ era: "legacy" })), adoptMade);
  }

  // A bare script has one tool, and answers to whatever it is called.
  function adoptScript(run) {
    const read = surface.read({ tools: { run: { description: "A script.", run } } });
    read.server.script = mapGet(read.server.tools, "run");
    return keep(read, undefined);
  }

  // --- calls -------------------------------------------------------------------------------------------------

  // Signals by the call's number, made when a tool asks for its own, which few do. `true` for a call that was aborted before.
  const signals = new NewMap();
  let asked = false;

  const logger = (level) => (...values) => {
    let line = "";
    for (let i = 0; i < values.length; i++) {
      line += (i === 0 ? "" : " ") + (typeof values[i] === "string" ? values[i] : web.inspect(values[i]));
    }
    native.log(level, line);
  };
  const log = logger("info");
  for (const level of ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]) {
    log[level] = freeze(logger(level));
  }
  freeze(log);

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
    #server;
    constructor(id, server) {
      this.#id = id;
      this.#server = server;
    }
    get signal() {
      return signalOf(this.#id);
    }
    get elicit() {
      return client.elicit(this.#id, this);
    }
    get sample() {
      return client.sample(this.#id, this);
    }
    get roots() {
      return client.roots(this.#id, this);
    }
    get client() {
      return client.describe(this.#id);
    }
    get notify() {
      return client.notify(this.#id, this.#server);
    }
  }
  defineProperties(Context.prototype, { log: { value: log, enumerable: true }, progress: { value: progress, enumerable: true } });
  delete Context.prototype.constructor;
  freeze(setPrototypeOf(Context.prototype, null));

  function findHandler(server, operation, name) {
    if (operation === "tool") return server.script ?? mapGet(server.tools, name);
    if (operation === "prompt") return mapGet(server.prompts, name);
    if (operation === "complete") return (input, ctx) => complete(server, input, ctx);
    if (server.read !== undefined) return (_input, ctx) => server.read(name, ctx);
    const fixed = mapGet(server.resources, name);
    if (fixed !== undefined) return (_input, ctx) => withText(fixed({ __proto__: null, uri: name, variables: {} }, ctx));
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
      return (_input, ctx) => withText(read({ __proto__: null, uri: name, variables }, ctx));
    }
    return undefined;
  }

  const isPromise = (value) =>
    (typeof value === "object" || typeof value === "function") && value !== null && typeof value.then === "function";

  // The bytes of a Uint8Array or an ArrayBuffer as base64; undefined for anything else.
  function base64(value) {
    if (typeof value !== "object" || value === null) return undefined;
    if (typedArrayTag(value) === "Uint8Array") return toBase64(value);
    try {
      bufferLength(value);
    } catch {
      return undefined;
    }
    return toBase64(new NewBytes(value));
  }

  // What a resource's `read` gives, with bytes made text: JSON has none.
  function withText(value) {
    if (isPromise(value)) return then(promiseResolve(NewPromise, value), withText);
    const blob = base64(value);
    if (blob !== undefined) return { __proto__: null, blob };
    if (typeof value !== "object" || value === null) return value;
    const within = base64(value.blob);
    return within === undefined ? value : { ...value, blob: within };
  }

  // --- completion --------------------------------------------------------------------------------------------

  // MCP shows no more than these at once.
  const MOST_VALUES = 100;

  // Given back in place of suggestions.
  const missing = freeze({ __proto__: null });

  // The function that suggests values for what a request names; undefined if there is none, null if that is not there.
  function findCompleter(server, ref, argument) {
    if (ref?.type === "ref/prompt") {
      const completers = mapGet(server.completers, ref.name);
      return completers === undefined ? null : mapGet(completers, argument?.name);
    }
    if (ref?.type !== "ref/resource") return null;
    for (let i = 0; i < server.templates.length; i++) {
      if (server.templates[i].uri === ref.uri) return mapGet(server.templates[i].completers, argument?.name);
    }
    return mapGet(server.resources, ref.uri) === undefined ? null : undefined;
  }

  function complete(server, input, ctx) {
    if (server.complete !== undefined) return then(server.complete(input, ctx), suggestions);
    const { ref, argument, context } = input;
    const run = findCompleter(server, ref, argument);
    if (run === null) return missing;
    if (run === undefined) return suggestions(empty());
    const found = run(argument.value, { __proto__: null, arguments: context?.arguments ?? {} }, ctx);
    return isPromise(found) ? then(promiseResolve(NewPromise, found), suggestions) : suggestions(found);
  }

  function suggestions(found) {
    const given = isArray(found) ? found : found?.values;
    if (!isArray(given)) throw new NewTypeError("`complete` gives an array of strings, or an object with `values`");
    const values = empty();
    for (let i = 0; i < given.length && i < MOST_VALUES; i++) {
      const value = given[i];
      if (typeof value !== "string") throw new NewTypeError(`\`complete\` gives strings, and not a ${typeof value}`);
      push(values, value);
    }
    const more = given.length > MOST_VALUES;
    const { total, hasMore } = isArray(found) ? missing : found;
    if (total !== undefined && !isFiniteNumber(total)) throw new NewTypeError("`total` must be a finite number");
    if (hasMore !== undefined && typeof hasMore !== "boolean") throw new NewTypeError("`hasMore` must be true or false");
    return { __proto__: null, values, total: total ?? (more ? given.length : undefined), hasMore: more || hasMore };
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
    const failure = rpc.failureOf(error);
    native.fail(id, failure?.code ?? "tool_error", failure?.message ?? web.formatError(error));
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
      value = run(input, freeze(new Context(id, server)));
      // What is no promise needs none.
      if (value === missing) return native.fail(id, "unknown_tool", "there is no such prompt or resource to complete");
      if (!isPromise(value) && server.telling === undefined) return succeed(id, value);
    } catch (error) {
      return fail(id, error);
    }
    const told = (end) => (server.telling === undefined ? end() : then(server.telling, end));
    then(
      promiseResolve(NewPromise, value),
      (value) => told(() => succeed(id, value)),
      (error) => told(() => fail(id, error)),
    );
  }

  function abort(id) {
    rpc.cancel(id);
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
