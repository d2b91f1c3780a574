// A connection to a server that speaks MCP itself: requests and their answers, notifications, and what the server asks.
// Evaluated once, in the base zygote, before any tenant's code; what it needs later is captured here.
//
// What comes from the server is whatever it likes. A message that fits nothing is dropped; the limits of calls and of
// initialisation bound the rest.
//
// native: asyncContext(), setAsyncContext(call)
(function rpc(native) {
  "use strict";

  const { freeze, hasOwn, setPrototypeOf } = Object;
  const { isSafeInteger } = Number;
  const { stringify } = JSON;
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const then = uncurry(Promise.prototype.then);
  const push = uncurry(Array.prototype.push);
  const startsWith = uncurry(String.prototype.startsWith);
  const mapGet = uncurry(Map.prototype.get);
  const mapSet = uncurry(Map.prototype.set);
  const mapDelete = uncurry(Map.prototype.delete);
  const mapForEach = uncurry(Map.prototype.forEach);
  const weakGet = uncurry(WeakMap.prototype.get);
  const weakSet = uncurry(WeakMap.prototype.set);
  const NewError = Error;
  const NewMap = Map;
  const NewPromise = Promise;

  // Without a prototype, so that nobody's accessor sees it filled.
  const empty = () => setPrototypeOf([], null);

  const LEVELS = new NewMap();
  for (const level of ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]) {
    mapSet(LEVELS, level, true);
  }

  // --- errors of the server's --------------------------------------------------------------------------------

  const METHOD_NOT_FOUND = -32601;
  const INVALID_PARAMS = -32602;
  const RESOURCE_NOT_FOUND = -32002;

  // By the error that stands for it: the code of the protocol, the text, and whether it means that there is no such thing.
  const answered = new WeakMap();

  function errorOf(given) {
    const { code, message } = typeof given === "object" && given !== null ? given : {};
    const number = isSafeInteger(code) ? code : -32603;
    const said = typeof message === "string" ? message : "the server gave no reason";
    const text = startsWith(said, "MCP error ") ? said : `MCP error ${number}: ${said}`;
    const error = new NewError(text);
    weakSet(answered, error, { __proto__: null, code: number, message: text, unknown: false });
    return error;
  }

  const answerOf = (error) => (typeof error === "object" && error !== null ? weakGet(answered, error) : undefined);

  // How the worker tells its host of such an error; undefined for every other.
  function failureOf(error) {
    const answer = answerOf(error);
    if (answer === undefined) return undefined;
    const { code, message, unknown } = answer;
    if (unknown && (code === INVALID_PARAMS || code === METHOD_NOT_FOUND || code === RESOURCE_NOT_FOUND)) {
      return { __proto__: null, code: "unknown_tool", message };
    }
    return { __proto__: null, code: code === INVALID_PARAMS ? "bad_arguments" : "tool_error", message };
  }

  // --- one connection ----------------------------------------------------------------------------------------

  // The last request of each call in flight, by the call's number.
  const calls = new NewMap();

  function within(call, work) {
    const before = native.asyncContext();
    if (before === call) return work();
    native.setAsyncContext(call);
    try {
      return work();
    } finally {
      native.setAsyncContext(before);
    }
  }

  // The server says that something of it has changed. What it says while that is being told is told once more afterwards.
  function changed(entry, what, uri) {
    const key = `${what} ${uri}`;
    entry.told ??= new NewMap();
    const telling = mapGet(entry.told, key) !== undefined;
    mapSet(entry.told, key, telling);
    if (telling) return;
    const { notify } = entry.ctx;
    const told = within(entry.call, () =>
      what === "tools" ? notify.toolsChanged()
      : what === "prompts" ? notify.promptsChanged()
      : what === "resources" ? notify.resourcesChanged()
      : notify.resourceUpdated(uri));
    const over = () => {
      const again = mapGet(entry.told, key);
      mapDelete(entry.told, key);
      if (again) changed(entry, what, uri);
    };
    then(told, over, over); // a host that tells nobody is no error of the server's
  }

  function logged(entry, { level, logger, data }) {
    const text = typeof data === "string" ? data : stringify(data);
    const line = typeof logger === "string" ? `${logger}: ${text}` : `${text}`;
    const known = mapGet(LEVELS, level) === undefined ? "info" : level;
    within(entry.call, () => entry.ctx.log[known](line));
  }

  function told(pending, entry, method, params) {
    if (typeof params !== "object" || params === null) params = {};
    if (method === "notifications/progress") {
      const of = mapGet(pending, params.progressToken);
      if (of?.ctx !== undefined) within(of.call, () => of.ctx.progress(params.progress, params.total, params.message));
    } else if (entry?.ctx === undefined) return;
    else if (method === "notifications/message") logged(entry, params);
    else if (method === "notifications/tools/list_changed") changed(entry, "tools");
    else if (method === "notifications/prompts/list_changed") changed(entry, "prompts");
    else if (method === "notifications/resources/list_changed") changed(entry, "resources");
    else if (method === "notifications/resources/updated") changed(entry, "resource", params.uri);
  }

  function ask(ctx, method, params, key) {
    const given = { ...params, key };
    if (method === "elicitation/create") return ctx.elicit(given);
    if (method === "sampling/createMessage") return ctx.sample(given);
    if (method === "roots/list") return ctx.roots(given);
    return undefined;
  }

  // `post(message, entry)` brings a message to the server; `entry` is there for a request, whose answers it may bring back.
  function connect(post) {
    const pending = new NewMap();
    let last = 0;
    let closed = false;

    function take(id) {
      const entry = mapGet(pending, id);
      if (entry === undefined) return undefined;
      mapDelete(pending, id);
      if (mapGet(calls, entry.call) === entry) mapDelete(calls, entry.call);
      return entry;
    }

    function request(method, params, ctx) {
      return new NewPromise((resolve, reject) => {
        if (closed) throw new NewError("the server has closed its connection");
        const id = ++last;
        const call = native.asyncContext();
        const entry = { __proto__: null, id, call, ctx, resolve, reject, told: undefined };
        mapSet(pending, id, entry);
        if (ctx !== undefined) {
          entry.fail = (error) => fail(id, error);
          entry.cancel = () => post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } });
          mapSet(calls, call, entry);
          params = { ...params, _meta: { progressToken: id } }; // whether anybody listens, the host knows
        }
        try {
          post({ jsonrpc: "2.0", id, method, params }, entry);
        } catch (error) {
          fail(id, error);
        }
      });
    }

    const notify = (method) => post({ jsonrpc: "2.0", method });

    function fail(id, error) {
      take(id)?.reject(error);
    }

    function asked(entry, id, method, params) {
      const respond = (key, value) => {
        if (!closed) post({ jsonrpc: "2.0", id, [key]: value });
      };
      if (method === "ping") return respond("result", {});
      const answer = entry?.ctx === undefined ? undefined : within(entry.call, () => ask(entry.ctx, method, params));
      if (answer === undefined) {
        return respond("error", { code: METHOD_NOT_FOUND, message: `nobody can be asked \`${method}\` here` });
      }
      const refuse = ({ code, message }) =>
        respond("error", { code: code === "client_cannot" ? METHOD_NOT_FOUND : -32603, message, data: { code } });
      within(entry.call, () => then(answer, (result) => respond("result", result), refuse));
    }

    // `related` is the request that the server says this message belongs to; without it the call whose code sends it counts.
    function receive(message, related) {
      if (closed || typeof message !== "object" || message === null) return;
      const { id, method } = message;
      if (method === undefined) {
        const entry = take(id);
        if (entry === undefined) return;
        if (hasOwn(message, "error")) entry.reject(errorOf(message.error));
        else entry.resolve(message.result);
        return;
      }
      const entry = mapGet(pending, related) ?? mapGet(calls, native.asyncContext());
      if (id === undefined) told(pending, entry, method, message.params);
      else asked(entry, id, method, message.params);
    }

    function close() {
      closed = true;
      const left = empty();
      mapForEach(pending, (entry) => push(left, entry));
      for (let i = 0; i < left.length; i++) fail(left[i].id, new NewError("the server has closed its connection"));
    }

    return freeze({ __proto__: null, request, notify, receive, fail, close });
  }

  // Whoever called is gone. The server may not answer any more, so the call ends here.
  function cancel(call) {
    const entry = mapGet(calls, call);
    if (entry === undefined) return;
    entry.fail(new NewError("the call was cancelled"));
    try {
      entry.cancel();
    } catch {
      // Its own listener threw; it is told no more.
    }
  }

  return freeze({ __proto__: null, connect, cancel, ask, errorOf, answerOf, failureOf, METHOD_NOT_FOUND });
});
