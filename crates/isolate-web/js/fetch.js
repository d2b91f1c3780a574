// fetch: the request goes to the host in one call, bodies in pieces. The host decides what may be reached.
import { hostCall } from "./host.js";
import {
  ErrorCtor, PromiseCtor, TypeErrorCtor, isView, jsonParse, jsonStringify, reject, then, typedArrayTag,
} from "./primordials.js";
import { isObject, requireArguments } from "./webidl.js";
import { abortReason, isAborted, onAbort } from "./abort.js";
import { blobBytes } from "./blob.js";
import { bodyOfBytes, bodyOfStream, isUnusable, readAll } from "./body.js";
import { readDataUrl } from "./data_url.js";
import { headersHooks } from "./headers.js";
import { hasIntegrity } from "./integrity.js";
import { parseMime } from "./mime.js";
import { Request, requestState } from "./request.js";
import { makeResponse, responseState } from "./response.js";
import { ReadableStream, cancelReader, readEach } from "./streams.js";

let nextRequest = 1;
const ignore = () => {};

const call = (op, meta, body = undefined) => hostCall(op, jsonStringify(meta), body);

/** What tenant code sees when the host refused or the network failed. */
function failure(reason) {
  const text = isObject(reason) && typeof reason.message === "string" ? reason.message : `${reason}`;
  const code = isObject(reason) ? reason.code : undefined;
  const cause = code === undefined ? reason : Object.assign(new ErrorCtor(text), { code });
  return new TypeErrorCtor(`fetch failed: ${text}`, { cause });
}

/** Reads the response's body piece by piece, one call to the host for each. */
function responseStream(id, aborted) {
  let controllerOf;
  const stream = new ReadableStream({
    __proto__: null,
    type: "bytes",
    start(controller) {
      controllerOf = controller;
    },
    pull(controller) {
      return then(
        call("fetch_read", { id }),
        ({ meta, body }) => {
          if (aborted.now) return;
          if (jsonParse(meta).done) {
            aborted.off();
            controller.close();
            controller.byobRequest?.respond(0);
          } else if (body.byteLength > 0) controller.enqueue(body);
        },
        (reason) => {
          aborted.off();
          throw failure(reason);
        },
      );
    },
    cancel() {
      aborted.off();
      return then(call("fetch_cancel", { id, of: "body" }), ignore, ignore);
    },
  }, { __proto__: null, highWaterMark: 0 });
  return { stream, fail: (reason) => controllerOf.error(reason) };
}

/**
 * Sends a body that is a stream, chunk after chunk, each once the host has taken the one before.
 * Returns the function that stops it.
 */
function sendStream(id, stream, failed) {
  let stopped = false;
  const send = (meta, chunk) =>
    then(call("fetch_write", meta, chunk), ignore, (reason) => {
      throw failure(reason);
    });
  const fail = (error) => {
    if (stopped) return;
    stopped = true;
    failed(error);
  };
  const reader = readEach(
    stream,
    (chunk) => {
      if (!isObject(chunk) || !isView(chunk) || typedArrayTag(chunk) !== "Uint8Array") {
        throw new TypeErrorCtor("the body's stream gave something else than a Uint8Array");
      }
      return send({ id, done: false }, chunk);
    },
    () => {
      if (!stopped) then(send({ id, done: true }), ignore, fail);
    },
    (error) => {
      if (!stopped) then(call("fetch_cancel", { id, of: "request" }), ignore, ignore);
      fail(error);
    },
  );
  return (reason) => {
    if (stopped) return;
    stopped = true;
    cancelReader(reader, reason);
  };
}

function localResponse(request) {
  if (request.url.startsWith("data:")) {
    const data = readDataUrl(request.url);
    if (data === null) throw failure("the data: URL is malformed");
    return respond(request, data.bytes, data.type);
  }
  const blob = request.blob;
  if (blob === undefined || request.method !== "GET") throw failure("the blob: URL leads nowhere");
  return respond(request, blobBytes(blob), parseMime(blob.type) === null ? "" : blob.type, [["content-length", `${blob.size}`]]);
}

function respond(request, bytes, type, more = []) {
  const headers = headersHooks.make("immutable", [...more, ["content-type", type]]);
  const body = request.method === "HEAD" ? null : bodyOfBytes(bytes);
  const url = request.url.split("#")[0];
  return makeResponse({ type: "basic", url, status: 200, statusText: "OK", headers, body, immutable: true });
}

function remoteResponse(request, resolve, fail) {
  const { method, url, headers, redirect, body, signal } = request;
  const id = nextRequest++;
  const stream = body !== null && body.stream !== null;
  const bytes = body === null || stream ? undefined : body.bytes;
  const aborted = { now: false, off: ignore };
  let failBody = ignore;
  let stopSending = ignore;
  const give = (reason) => {
    aborted.now = true;
    aborted.off();
    stopSending(reason);
    failBody(reason);
    fail(reason);
  };
  aborted.off = onAbort(signal, () => {
    const reason = abortReason(signal);
    then(call("fetch_cancel", { id, of: "request" }), ignore, ignore);
    give(reason);
  });
  const meta = {
    id, method, url: url.split("#")[0], headers: headersHooks.list(headers), redirect,
    bodyLength: bytes === undefined ? null : bytes.length, stream,
  };
  if (body !== null) body.used = true;
  then(
    call("fetch", meta, bytes),
    ({ meta: text }) => {
      if (aborted.now) return;
      const head = jsonParse(text);
      let content = null;
      if (head.bodyId !== null && head.bodyId !== undefined) {
        const { stream: pulled, fail: failStream } = responseStream(head.bodyId, aborted);
        failBody = failStream;
        content = bodyOfStream(pulled);
      } else aborted.off();
      const list = head.headers.map(([name, value]) => [name.toLowerCase(), value]);
      resolve(makeResponse({
        type: "basic", url: head.url, redirected: !!head.redirected, status: head.status, statusText: head.statusText ?? "",
        headers: headersHooks.make("immutable", list), body: content, immutable: true,
      }));
    },
    (reason) => {
      if (!aborted.now) give(failure(reason));
    },
  );
  if (stream) stopSending = sendStream(id, body.stream, give);
}

/** Gives the response only if its body has a digest that the request's integrity names. */
function checked(request, response, resolve, fail) {
  if (request.integrity === "") {
    resolve(response);
    return;
  }
  const state = responseState(response);
  const done = (bytes) => {
    if (!hasIntegrity(bytes, request.integrity)) fail(failure("the body does not have the digest that the request asks for"));
    else resolve(makeResponse({ ...state, body: state.body === null ? null : bodyOfBytes(bytes) }));
  };
  readAll(state.body, done, fail);
}

export const { fetch } = {
  fetch(input, init = undefined) {
    try {
      requireArguments(arguments.length, 1, "fetch");
      const request = requestState(new Request(input, init));
      if (isUnusable(request.body)) return reject(new TypeErrorCtor("the body is locked or was read already"));
      if (isAborted(request.signal)) return reject(abortReason(request.signal));
      return new PromiseCtor((settle, fail) => {
        const resolve = (response) => checked(request, response, settle, fail);
        const scheme = request.url.split(":", 1)[0];
        if (scheme === "data" || scheme === "blob") resolve(localResponse(request));
        else if (scheme === "http" || scheme === "https") remoteResponse(request, resolve, fail);
        else fail(failure(`the scheme "${scheme}" is not supported`));
      });
    } catch (error) {
      return reject(error);
    }
  },
};
