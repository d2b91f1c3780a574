// A server that wants out: what it tries, its tool's arguments say.
import http from "node:http";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import dns from "node:dns/promises";
import { serve } from "./mcp.mjs";

const failed = (error) => ({ error: `${error} ${error.cause ?? ""} ${error.code ?? ""}` });

const kind = (url) => (url.startsWith("https:") ? https : http);

const module = (url, options = {}) =>
  new Promise((done) => {
    const request = kind(url).get(url, options, async (answer) => {
      let body = "";
      for await (const piece of answer) body += piece;
      done({ status: answer.statusCode, body });
    });
    request.once("error", (error) => done(failed(error)));
  });

// As those do who speak over TLS without any agent.
const secure = (url) =>
  new Promise((done) => {
    const { hostname, port, pathname, host } = new URL(url);
    const socket = tls.connect({ host: hostname, port: Number(port) }, () => {
      socket.write(`GET ${pathname} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    });
    let body = "";
    socket.on("data", (bytes) => (body += bytes));
    socket.once("close", () => done({ status: Number(body.split(" ")[1]), body }));
    socket.once("error", (error) => done(failed(error)));
  });

// A server may have its own way to send what it fetches.
class Own {
  constructor(options) {
    if (!options.mine) throw new Error("this is not for others to make");
  }
  dispatch(_, handler) {
    const error = new Error("sent by its own");
    if (handler.onError) handler.onError(error);
    else handler.onResponseError(null, error);
    return true;
  }
}
const own = async (url) => {
  globalThis[Symbol.for("undici.globalDispatcher.1")] = new Own({ mine: true });
  return fetch(url).then(() => "sent by another", failed);
};

const connect = (host, port) =>
  new Promise((done) => {
    const socket = net.connect({ host, port, timeout: 5000 });
    const over = (outcome) => {
      socket.destroy();
      done(outcome);
    };
    socket.once("connect", () => over("connected"));
    socket.once("error", (error) => over(String(error)));
    socket.once("timeout", () => over("nobody answers"));
  });

const tries = {
  fetch: ({ url }) => fetch(url).then(async (answer) => ({ status: answer.status, body: await answer.text() }), failed),
  module: ({ url }) => module(url),
  agent: ({ url }) => module(url, { agent: new (kind(url).Agent)({ keepAlive: false }) }),
  secure: ({ url }) => secure(url),
  own: ({ url }) => own(url),
  connect: ({ host, port }) => connect(host, port),
  resolve: ({ name }) => dns.lookup(name).then(({ address }) => address, String),
  environment: () => ({ ...process.env }),
};

await serve((given) => tries[given.do](given));
