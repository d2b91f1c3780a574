// A server that is a fetch handler: a function of a `Request` that gives the promise of a `Response`.
// Evaluated once, in the base zygote, before any tenant's code; what it needs later is captured here.
//
// web: makeAbort()
// rpc, offer: rpc.js, offer.js
(function handler(web, rpc, offer) {
  "use strict";

  const { parse, stringify } = JSON;
  const { freeze, hasOwn, setPrototypeOf } = Object;
  const { apply } = Reflect;
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const getter = (prototype, name) => uncurry(Object.getOwnPropertyDescriptor(prototype, name).get);
  const exec = uncurry(RegExp.prototype.exec);
  const indexOf = uncurry(String.prototype.indexOf);
  const slice = uncurry(String.prototype.slice);
  const startsWith = uncurry(String.prototype.startsWith);
  const endsWith = uncurry(String.prototype.endsWith);
  const push = uncurry(Array.prototype.push);
  const then = uncurry(Promise.prototype.then);
  const mapGet = uncurry(Map.prototype.get);
  const mapSet = uncurry(Map.prototype.set);
  const encode = uncurry(TextEncoder.prototype.encode);
  const decode = uncurry(TextDecoder.prototype.decode);
  const toBase64 = uncurry(Uint8Array.prototype.toBase64);
  const statusOf = getter(Response.prototype, "status");
  const headersOf = getter(Response.prototype, "headers");
  const bodyOf = getter(Response.prototype, "body");
  const headerOf = uncurry(Headers.prototype.get);
  const setHeader = uncurry(Headers.prototype.set);
  const readerOf = uncurry(ReadableStream.prototype.getReader);
  const readNext = uncurry(ReadableStreamDefaultReader.prototype.read);
  const stopReading = uncurry(ReadableStreamDefaultReader.prototype.cancel);
  const NewDecoder = TextDecoder;
  const NewError = Error;
  const NewHeaders = Headers;
  const NewMap = Map;
  const NewRequest = Request;
  const NewTypeError = TypeError;
  const encoder = new TextEncoder();

  const ADDRESS = "http://server/mcp";
  const MOST_CHARACTERS = 64 << 20;
  const MOST_DEPTH = 16;
  const NAMED = { __proto__: null, "tools/call": "name", "prompts/get": "name", "resources/read": "uri" };

  const recognises = (exported) => typeof exported.fetch === "function";

  // --- headers of the newest revision ------------------------------------------------------------------------

  const PLAIN = /^(?! )[\x20-\x7e]*(?<! )$/;

  function headerValue(value) {
    const text = `${value}`;
    if (exec(PLAIN, text) !== null && !startsWith(text, "=?base64?")) return text;
    return `=?base64?${toBase64(encode(encoder, text))}?=`;
  }

  // Which arguments of a tool are repeated in headers, and in which. A place is a key and the place above it.
  function declared(schema, place, depth, found) {
    const properties = schema?.properties;
    if (typeof properties !== "object" || properties === null || depth > MOST_DEPTH) return found;
    for (const key in properties) {
      if (!hasOwn(properties, key)) continue;
      const below = { __proto__: null, above: place, key };
      const name = properties[key]?.["x-mcp-header"];
      if (typeof name === "string") push(found, { __proto__: null, place: below, header: `Mcp-Param-${name}` });
      declared(properties[key], below, depth + 1, found);
    }
    return found;
  }

  const valueAt = (place, given) => (place === undefined ? given : valueAt(place.above, given)?.[place.key]);

  function setParameters(headers, parameters, given) {
    for (let i = 0; i < (parameters?.length ?? 0); i++) {
      const value = valueAt(parameters[i].place, given);
      if (value !== undefined && value !== null) setHeader(headers, parameters[i].header, headerValue(value));
    }
  }

  // --- answers -----------------------------------------------------------------------------------------------

  function answerHeaders(response) {
    try {
      return headersOf(response);
    } catch {
      throw new NewTypeError("the handler's `fetch` gave no `Response`");
    }
  }

  async function eachPiece(response, take) {
    const body = bodyOf(response);
    if (body === null) return;
    const reader = readerOf(body);
    const decoder = new NewDecoder();
    let length = 0;
    for (;;) {
      const { done, value } = await readNext(reader);
      const text = done ? decode(decoder) : decode(decoder, value, { stream: true });
      length += text.length;
      if (length > MOST_CHARACTERS) throw new NewError("the handler's answer is too long");
      if (take(text) === false || done) {
        if (!done) then(stopReading(reader), () => {}, () => {});
        return;
      }
    }
  }

  async function textOf(response) {
    let all = "";
    await eachPiece(response, (text) => {
      all += text;
    });
    return all;
  }

  // Gives each event's data to `take`, until that gives false.
  function events(response, take) {
    let rest = "";
    let seen = 0;
    let data;
    return eachPiece(response, (text) => {
      rest += text;
      let start = 0;
      for (let end = indexOf(rest, "\n", seen); end >= 0; end = indexOf(rest, "\n", start)) {
        const line = slice(rest, start, endsWith(slice(rest, start, end), "\r") ? end - 1 : end);
        start = end + 1;
        if (startsWith(line, "data:")) {
          const part = slice(line, startsWith(line, "data: ") ? 6 : 5);
          data = data === undefined ? part : `${data}\n${part}`;
        } else if (line === "" && data !== undefined) {
          const event = data;
          data = undefined;
          if (take(event) === false) return false;
        }
      }
      rest = slice(rest, start);
      seen = rest.length;
      return true;
    });
  }

  const parsed = (text) => {
    try {
      return parse(text);
    } catch {
      return undefined;
    }
  };

  // --- the face ----------------------------------------------------------------------------------------------

  async function adopt(exported) {
    const connection = { __proto__: null, modern: true, version: offer.MODERN, session: undefined };
    const parameters = new NewMap();

    function envelope(message) {
      if (!connection.modern || message.id === undefined) return message;
      const _meta = {
        ...message.params?._meta,
        "io.modelcontextprotocol/protocolVersion": offer.MODERN,
        "io.modelcontextprotocol/clientCapabilities": offer.capabilities(),
        "io.modelcontextprotocol/clientInfo": offer.clientInfo(),
        "io.modelcontextprotocol/logLevel": "debug",
      };
      return { ...message, params: { ...message.params, _meta } };
    }

    function headersFor({ method, params }) {
      const headers = new NewHeaders();
      setHeader(headers, "content-type", "application/json");
      setHeader(headers, "accept", "application/json, text/event-stream");
      if (connection.version !== undefined) setHeader(headers, "mcp-protocol-version", connection.version);
      if (connection.session !== undefined) setHeader(headers, "mcp-session-id", connection.session);
      if (!connection.modern || method === undefined) return headers;
      setHeader(headers, "mcp-method", method);
      const name = NAMED[method] === undefined ? undefined : params?.[NAMED[method]];
      if (name !== undefined) setHeader(headers, "mcp-name", headerValue(name));
      if (method === "tools/call") setParameters(headers, mapGet(parameters, name), params.arguments);
      return headers;
    }

    async function exchange(message, entry, signal) {
      const sent = { method: "POST", headers: headersFor(message), body: stringify(envelope(message)), signal };
      // As on hosts of such handlers: an environment, which is empty here, and what lets them go on after their answer.
      const around = { waitUntil: () => {}, passThroughOnException: () => {} };
      const response = await apply(exported.fetch, exported, [new NewRequest(ADDRESS, sent), {}, around]);
      if (entry === undefined) return;
      const headers = answerHeaders(response);
      connection.session ??= headerOf(headers, "mcp-session-id") ?? undefined;
      let answered = false;
      const take = (text) => {
        const received = parsed(text);
        // What cannot be read by the handler is answered with no id.
        if (received?.id === null && received.error !== undefined) peer.fail(entry.id, rpc.errorOf(received.error));
        else peer.receive(received, entry.id);
        answered ||= received?.method === undefined && (received?.id === entry.id || received?.id === null);
        return !answered;
      };
      if (startsWith(headerOf(headers, "content-type") ?? "", "text/event-stream")) await events(response, take);
      else take(await textOf(response));
      if (answered) return;
      const { method } = message;
      throw new NewError(`the handler answered \`${method}\` with status ${statusOf(response)} and no response to it`);
    }

    const peer = rpc.connect((message, entry) => {
      const { signal, abort } = web.makeAbort();
      if (entry !== undefined) entry.cancel = abort;
      then(exchange(message, entry, signal), () => {}, (error) => {
        if (entry !== undefined) peer.fail(entry.id, error);
      });
    });

    let greeting;
    try {
      greeting = await offer.discover(peer);
    } catch {
      connection.modern = false;
      connection.version = undefined;
      greeting = await offer.initialize(peer);
      connection.version = greeting.version;
      peer.notify("notifications/initialized");
    }
    return offer.adopt(peer, greeting, ({ name, inputSchema }) => {
      const found = declared(inputSchema, undefined, 0, setPrototypeOf([], null));
      if (found.length > 0) mapSet(parameters, name, found);
    });
  }

  return freeze({ __proto__: null, recognises, adopt });
});
