// A server that wants out: what it tries, its tool's arguments say.
import http from "node:http";
import https from "node:https";
import net from "node:net";
import dns from "node:dns/promises";
import { serve } from "./mcp.mjs";

const failed = (error) => ({ error: `${error} ${error.cause ?? ""} ${error.code ?? ""}` });

const module = (url) =>
  new Promise((done) => {
    const { get } = url.startsWith("https:") ? https : http;
    const request = get(url, async (answer) => {
      let body = "";
      for await (const piece of answer) body += piece;
      done({ status: answer.statusCode, body });
    });
    request.once("error", (error) => done(failed(error)));
  });

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
  connect: ({ host, port }) => connect(host, port),
  resolve: ({ name }) => dns.lookup(name).then(({ address }) => address, String),
  environment: () => ({ ...process.env }),
};

await serve((given) => tries[given.do](given));
