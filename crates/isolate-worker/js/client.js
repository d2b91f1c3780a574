// What a call may have of the client behind it: answers to questions, who it is, and that it is told of changes.
// Evaluated once, in the base zygote, before any tenant's code; what it needs later is captured here.
//
// native: ask(id, json), hostCallOf(id, operation, json)
// Gives functions of a call's number, and of its context where the call must be known again.
(function client(native) {
  "use strict";

  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const { freeze, hasOwn, defineProperty } = Object;
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const exec = uncurry(RegExp.prototype.exec);
  const then = uncurry(Promise.prototype.then);
  const mapGet = uncurry(Map.prototype.get);
  const mapSet = uncurry(Map.prototype.set);
  const weakGet = uncurry(WeakMap.prototype.get);
  const weakSet = uncurry(WeakMap.prototype.set);
  const NewError = Error;
  const NewMap = Map;
  const NewPromise = Promise;
  const NewTypeError = TypeError;

  const KEY = /^[A-Za-z0-9_.\/-]{1,128}$/;

  // Completes an error that was made when the author asked, so that its stack says where.
  function refusal(error, code, message) {
    define(error, "message", message, false);
    return define(error, "code", code, true);
  }

  const define = (error, key, value, enumerable) =>
    defineProperty(error, key, { __proto__: null, value, writable: true, enumerable, configurable: true });

  function need(holds, message) {
    if (!holds) throw new NewTypeError(message);
  }

  function settle(reply, error, resolve, reject, take) {
    const give = (value) => {
      try {
        resolve(take(value));
      } catch (thrown) {
        reject(thrown);
      }
    };
    // The worker's own error may be of another realm, so it does not go any further.
    then(reply, give, ({ code, message }) => reject(refusal(error, code, message)));
  }

  // --- questions ---------------------------------------------------------------------------------------------

  // By context: how many questions had no key, the keys so far, and the answers to what this turn asks.
  const asking = new WeakMap();

  function stateOf(ctx) {
    const known = weakGet(asking, ctx);
    if (known !== undefined) return known;
    const made = { __proto__: null, unnamed: 0, keys: new NewMap(), batch: undefined, answers: undefined };
    weakSet(asking, ctx, made);
    return made;
  }

  function keyOf(state, key) {
    const name = key === undefined ? `input-${++state.unnamed}` : key;
    need(typeof name === "string" && exec(KEY, name) !== null, "a key has 1 to 128 letters, digits, and _ . / -");
    need(mapGet(state.keys, name) === undefined, `the key \`${name}\` is there twice in this call`);
    mapSet(state.keys, name, true);
    return name;
  }

  function ask(id, ctx, method, given, check) {
    return new NewPromise((resolve, reject) => {
      need(typeof given === "object" && given !== null, "what to ask must be an object");
      const { key, ...params } = given;
      check(params);
      const state = stateOf(ctx);
      const name = keyOf(state, key);
      const batch = native.ask(id, stringify({ __proto__: null, key: name, method, params }));
      // One promise for all that this turn asks, and so one look at its reply.
      if (state.batch !== batch) {
        state.batch = batch;
        state.answers = then(batch, ({ meta }) => parse(meta).answers);
      }
      const error = new NewError();
      settle(state.answers, error, resolve, reject, (answers) => {
        if (!hasOwn(answers, name)) throw refusal(error, "no_answer", `the client did not answer \`${name}\``);
        return answers[name];
      });
    });
  }

  function checkElicit({ mode, message, url, requestedSchema }) {
    need(typeof message === "string", "`message` must be a string");
    if (mode === "url") need(typeof url === "string", "`url` must be a string");
    else need(typeof requestedSchema === "object" && requestedSchema !== null, "`requestedSchema` must be an object");
  }

  function checkSample({ messages }) {
    need(isArray(messages), "`messages` must be an array");
  }

  const elicit = (id, ctx) => (asked) => ask(id, ctx, "elicitation/create", asked, checkElicit);
  const sample = (id, ctx) => (asked) => ask(id, ctx, "sampling/createMessage", asked, checkSample);
  const roots = (id, ctx) => (asked = {}) => ask(id, ctx, "roots/list", asked, () => {});

  // --- who it is, and what it is told ------------------------------------------------------------------------

  function hostCall(id, operation, meta, take) {
    return new NewPromise((resolve, reject) => {
      const reply = native.hostCallOf(id, operation, stringify(meta));
      settle(reply, new NewError(), resolve, reject, take);
    });
  }

  const describe = (id) => () => hostCall(id, "client", { __proto__: null }, ({ meta }) => parse(meta));

  // What the host is told of a change goes with what the server shows by now, if that is something else than at first.
  // Answers wait for it (`telling`): a call that is over tells nobody anything.
  function notify(id, server) {
    const send = (what, uri, shows) => hostCall(id, "notify", { __proto__: null, what, uri, shows }, () => undefined);
    const tell = (what) => {
      const shown = new NewPromise((resolve) => resolve(server.again?.()));
      const told = then(shown, (shows) => send(what, undefined, strayed(server, shows)));
      const before = server.telling;
      const over = then(told, () => {}, () => {});
      const telling = before === undefined ? over : then(before, () => over);
      server.telling = telling;
      then(telling, () => {
        if (server.telling === telling) server.telling = undefined;
      });
      return told;
    };
    return freeze({
      __proto__: null,
      toolsChanged: () => tell("tools"),
      promptsChanged: () => tell("prompts"),
      resourcesChanged: () => tell("resources"),
      resourceUpdated(uri) {
        need(typeof uri === "string", "the address must be a string");
        return send("resource", uri);
      },
    });
  }

  const LONGEST_SURFACE = 128 << 10;

  function strayed(server, shows) {
    if (shows === undefined || shows === server.shown) return undefined;
    return shows.length > LONGEST_SURFACE ? "" : shows; // too long to be sent, it is no less another surface
  }

  return freeze({ __proto__: null, elicit, sample, roots, describe, notify });
});
