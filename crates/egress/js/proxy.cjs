// The proxy is the only way out, and a server need not know of it. This is loaded before the server: `fetch`, `http`, `https` and
// TLS then go through the proxy, with agents of the server's own as well. Newer versions of Node do so by themselves for the
// agents that they bring along (NODE_USE_ENV_PROXY), and for no others.
"use strict";
const [major, minor] = process.versions.node.split(".").map(Number);
const knows = major > 22 ? major >= 24 : major === 22 && minor >= 21;
const proxy = process.env.HTTPS_PROXY;
if (proxy) {
  const http = require("node:http");
  const https = require("node:https");
  const tls = require("node:tls");
  const { Duplex } = require("node:stream");
  const { connect } = tls;
  const { hostname, port } = new URL(proxy);
  const direct = new Set((process.env.NO_PROXY ?? "").split(","));
  const bracketed = (name) => (name.includes(":") && !name.startsWith("[") ? `[${name}]` : name);
  // Node sees to these itself.
  const theirs = (agent) => knows && (agent === http.globalAgent || agent === https.globalAgent || agent.options?.proxyEnv);

  // Without TLS the proxy is asked for whole URLs. Agents that connect in a way of their own have found one.
  const plain = http.Agent.prototype;
  const { addRequest, createConnection, createSocket } = plain;
  plain.addRequest = function (request, options, ...rest) {
    const name = options.hostname ?? options.host;
    const { path } = request;
    const own = this.createConnection !== createConnection || this.createSocket !== createSocket || theirs(this);
    if (own || typeof name !== "string" || options.socketPath || direct.has(name) || !path.startsWith("/")) {
      return addRequest.call(this, request, options, ...rest);
    }
    request.path = `http://${bracketed(name)}:${options.port || 80}${path}`;
    // Who gives headers as a list has them written down already.
    if (request._header) request._header = request._header.replace(` ${path} `, () => ` ${request.path} `);
    return addRequest.call(this, request, { ...options, host: hostname, hostname, port }, ...rest);
  };

  // A connection to the host behind the proxy.
  const reach = (name, number, done) => {
    const target = `${bracketed(name)}:${number || 443}`;
    const refused = () => done(Object.assign(new Error(`the proxy refuses ${target}`), { code: "ECONNREFUSED" }));
    const request = http.request({ hostname, port, method: "CONNECT", path: target, headers: { host: target }, agent: new http.Agent() });
    request.once("error", done);
    request.once("response", (response) => {
      response.resume();
      refused();
    });
    request.once("connect", (response, socket) => {
      if (response.statusCode === 200) return done(null, socket);
      socket.destroy();
      refused();
    });
    request.end();
  };

  // TLS in it is the server's own and verified by it.
  const tunnel = (options, done) => {
    const name = options.hostname ?? options.host;
    reach(name, options.port, (error, socket) => {
      if (error) return done(error);
      const secure = connect({ ...options, host: undefined, path: undefined, socket, servername: options.servername || name });
      secure.once("error", done);
      secure.once("secureConnect", () => {
        secure.removeListener("error", done);
        done(null, secure);
      });
    });
  };

  const secured = https.Agent.prototype;
  const { createConnection: securely } = secured;
  secured.createConnection = function (options, done, ...rest) {
    const simple = typeof options === "object" && typeof done === "function" && !options.socketPath;
    if (!simple || theirs(this) || direct.has(options.host)) return securely.call(this, options, done, ...rest);
    tunnel(options, done);
  };

  // For those who want a socket at once: it opens while they wait.
  const opening = (name, number) => {
    let socket;
    let ready;
    const opened = new Promise((done) => (ready = done));
    const stream = new Duplex({
      read: () => socket?.resume(),
      write: (bytes, _, done) => opened.then(() => socket.write(bytes, done)),
      final: (done) => opened.then(() => socket.end(done)),
      destroy: (error, done) => done(error, socket?.destroy()),
    });
    reach(name, number, (error, found) => {
      if (error) return stream.destroy(error);
      socket = found;
      if (stream.destroyed) return socket.destroy();
      socket.on("data", (bytes) => stream.push(bytes) || socket.pause());
      socket.once("end", () => stream.push(null));
      socket.once("error", (error) => stream.destroy(error));
      socket.once("close", () => stream.destroy());
      ready();
    });
    return stream;
  };
  tls.connect = (...words) => {
    const [first, second] = words;
    const given = words.find((word) => typeof word === "object" && word !== null) ?? {};
    const named = typeof first === "object" ? given : { host: typeof second === "string" ? second : undefined, port: first, ...given };
    const { host, port: number } = named;
    if (typeof host !== "string" || !number || named.socket || named.path || direct.has(host)) return connect(...words);
    const done = words.find((word) => typeof word === "function");
    const servername = named.servername ?? (require("node:net").isIP(host) ? undefined : host);
    return connect({ ...named, servername, socket: opening(host, number) }, done);
  };

  // A jail has no netlink sockets, by which Node asks for addresses and fails without them. All that there is is the loopback.
  const os = require("node:os");
  const { networkInterfaces } = os;
  const loopback = { address: "127.0.0.1", netmask: "255.0.0.0", family: "IPv4", mac: "00:00:00:00:00:00", internal: true, cidr: "127.0.0.1/8" };
  os.networkInterfaces = () => {
    try {
      return networkInterfaces();
    } catch {
      return { lo: [{ ...loopback }] };
    }
  };
  require("node:module").syncBuiltinESMExports();

  // What `fetch` sends with: the one that its first use makes, or one that the server has put in its place.
  const { fetch } = globalThis;
  const key = Symbol.for("undici.globalDispatcher.1");
  const seen = new WeakSet();
  const lead = (own) => {
    const { constructor } = own;
    const dispatch = own.dispatch.bind(own);
    const ways = {
      Agent: () => {
        const through = new constructor({ connect: (options, done) => tunnel({ ...options, ALPNProtocols: ["http/1.1"] }, done) });
        const whole = (options) => ({ ...options, origin: proxy, path: `${new URL(options.origin).origin}${options.path}` });
        return [through.dispatch.bind(through), (options, handler) => dispatch(whole(options), handler)];
      },
      // They know the proxy, and would have tunnels without TLS as well, which it does not make.
      ProxyAgent: () => {
        const plain = new constructor({ uri: proxy, proxyTunnel: false });
        return [dispatch, plain.dispatch.bind(plain)];
      },
    };
    const way = ways[constructor.name.replace("EnvHttp", "")];
    if (!way) return;
    const [secure, plain] = way();
    own.dispatch = (options, handler) => {
      const { protocol, hostname } = new URL(options.origin);
      if (direct.has(hostname)) return dispatch(options, handler);
      return (protocol === "https:" ? secure : plain)(options, handler);
    };
  };
  const behind = (...words) => {
    if (!globalThis[key]) fetch("data:,").catch(() => {});
    const own = globalThis[key];
    if (own && !seen.has(own)) {
      seen.add(own);
      lead(own);
    }
    return fetch(...words);
  };
  globalThis.fetch = Object.defineProperty(behind, "name", { value: "fetch" });
}
