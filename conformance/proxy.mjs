// Adds a key to every request, because the conformance suite cannot send one. Everything else, `Host` and `Origin` too,
// passes as it came, in both directions and as it comes: the gateway answers the suite, not this program.
// Usage: KEY=… node proxy.mjs http://127.0.0.1:PORT      prints the port it listens on
import http from 'node:http';

const gateway = new URL(process.argv[2]);
const key = process.env.KEY;
const agent = new http.Agent({ keepAlive: true, noDelay: true });

/** Headers that say how this hop is framed; each side writes its own. */
const HOP = new Set(['connection', 'keep-alive', 'transfer-encoding']);

function passed(raw) {
  const kept = [];
  for (let i = 0; i < raw.length; i += 2) if (!HOP.has(raw[i].toLowerCase())) kept.push(raw[i], raw[i + 1]);
  return kept;
}

const proxy = http.createServer((request, response) => {
  const headers = passed(request.rawHeaders);
  if (request.headers.authorization === undefined) headers.push('authorization', `Bearer ${key}`);
  if (request.headers['transfer-encoding']) headers.push('transfer-encoding', 'chunked');
  const upstream = http.request({
    agent, headers, setHost: false, host: gateway.hostname, port: gateway.port, method: request.method, path: request.url,
  });
  upstream.on('response', answer => {
    response.writeHead(answer.statusCode, passed(answer.rawHeaders));
    response.flushHeaders();
    answer.pipe(response);
    answer.on('error', () => response.destroy());
  });
  upstream.on('error', error => {
    if (response.headersSent) return response.destroy();
    response.writeHead(502, { 'content-type': 'text/plain' });
    return response.end(`the gateway did not answer: ${error.message}\n`);
  });
  // Who goes away goes away on both sides.
  response.on('close', () => { if (!response.writableFinished) upstream.destroy(); });
  request.pipe(upstream);
});
proxy.on('connection', socket => socket.setNoDelay(true));
proxy.keepAliveTimeout = 60_000;
proxy.listen(0, '127.0.0.1', () => console.log(proxy.address().port));
