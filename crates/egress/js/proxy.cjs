// Older versions of Node know nothing of HTTPS_PROXY. This is loaded before the server in those: `fetch`, `http` and `https`
// then go through the proxy, which is the only way out. Newer ones do so by themselves (NODE_USE_ENV_PROXY).
"use strict";
const [major, minor] = process.versions.node.split(".").map(Number);
const knows = major > 22 ? major >= 24 : major === 22 && minor >= 21;
const proxy = process.env.HTTPS_PROXY;
if (!knows && proxy) {
  const http = require("node:http");
  const https = require("node:https");
  const { hostname, port } = new URL(proxy);
  const direct = new Set((process.env.NO_PROXY ?? "").split(","));
  const bracketed = (name) => (name.includes(":") && !name.startsWith("[") ? `[${name}]` : name);

  // Without TLS the proxy is asked for whole URLs.
  class Plain extends http.Agent {
    addRequest(request, options, ...rest) {
      const name = options.hostname ?? options.host;
      if (options.socketPath || direct.has(name)) return super.addRequest(request, options, ...rest);
      const path = request.path;
      request.path = `http://${bracketed(name)}:${options.port || 80}${path}`;
      // Who gives headers as a list has them written down already.
      if (request._header) request._header = request._header.replace(` ${path} `, () => ` ${request.path} `);
      return super.addRequest(request, { ...options, host: hostname, hostname, port }, ...rest);
    }
  }
  http.globalAgent = new Plain({ keepAlive: true });

  // A connection to the host behind the proxy; TLS is the server's own and verified by it.
  const tunnel = (options, done) => {
    const name = options.hostname ?? options.host;
    const target = `${bracketed(name)}:${options.port || 443}`;
    const request = http.request({ hostname, port, method: "CONNECT", path: target, headers: { host: target }, agent: new http.Agent() });
    request.once("error", done);
    request.once("response", (response) => {
      response.resume();
      done(new Error(`the proxy refuses ${target}`));
    });
    request.once("connect", (response, socket) => {
      if (response.statusCode !== 200) {
        socket.destroy();
        return done(Object.assign(new Error(`the proxy refuses ${target}`), { code: "ECONNREFUSED" }));
      }
      const secure = require("node:tls").connect({ ...options, host: undefined, path: undefined, socket, servername: options.servername || name });
      secure.once("error", done);
      secure.once("secureConnect", () => {
        secure.removeListener("error", done);
        done(null, secure);
      });
    });
    request.end();
  };

  class Agent extends https.Agent {
    createConnection(options, done) {
      if (direct.has(options.host)) return super.createConnection(options, done);
      tunnel(options, done);
    }
  }
  https.globalAgent = new Agent({ keepAlive: true });

  const { fetch } = globalThis;
  const key = Symbol.for("undici.globalDispatcher.1");
  let ready = false;
  const behind = (...words) => {
    if (!ready) {
      ready = true;
      // The first use makes the dispatcher; its class is not to be had otherwise.
      fetch("data:,").catch(() => {});
      const own = globalThis[key];
      const Dispatcher = own?.constructor;
      if (Dispatcher) {
        const through = new Dispatcher({ connect: (options, done) => tunnel({ ...options, ALPNProtocols: ["http/1.1"] }, done) });
        const dispatch = through.dispatch.bind(through);
        through.dispatch = (options, handler) => {
          const { protocol, hostname, origin } = new URL(options.origin);
          if (direct.has(hostname)) return own.dispatch(options, handler);
          if (protocol === "https:") return dispatch(options, handler);
          return own.dispatch({ ...options, origin: proxy, path: `${origin}${options.path}` }, handler);
        };
        globalThis[key] = through;
      }
    }
    return fetch(...words);
  };
  globalThis.fetch = Object.defineProperty(behind, "name", { value: "fetch" });
}
