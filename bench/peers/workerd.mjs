// workerd: a fresh dynamic worker per call through its worker loader, driven over loopback HTTP.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { INPUT, TOOL, measure } from '../lib.mjs';

const path = relative => fileURLToPath(new URL(relative, import.meta.url));
const workerd = spawn(
  path('../node_modules/@cloudflare/workerd-linux-64/bin/workerd'),
  ['serve', '--experimental', '--control-fd=3', path('workerd/config.capnp'), 'config'],
  { stdio: ['ignore', 'inherit', 'inherit', 'pipe'] },
);
process.on('exit', () => workerd.kill('SIGKILL'));
const died = once(workerd, 'exit').then(() => { throw new Error('workerd ended by itself'); });
const [ready] = await Promise.race([once(createInterface(workerd.stdio[3]), 'line'), died]);
const { port } = JSON.parse(ready);
const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });

function post(route) {
  return new Promise((resolve, reject) => {
    const headers = { tool: encodeURIComponent(TOOL) };
    const request = http.request({ host: '127.0.0.1', port, agent, method: 'POST', path: route, headers }, response => {
      let body = '';
      response.setEncoding('utf8').on('data', chunk => { body += chunk; }).on('end', () => {
        if (response.statusCode === 200) resolve({ answer: JSON.parse(body), served: response.headers.served });
        else reject(new Error(`workerd answered ${response.statusCode}: ${body}`));
      });
    });
    request.on('error', reject).end(JSON.stringify(INPUT));
  });
}

const call = async () => ({ ...(await post('/fresh')), end: () => {} });

/** A worker that stays; that it stayed is checked by its own count at the end. */
let ids = 0;
async function held() {
  const route = `/held/${ids += 1}`;
  const { answer } = await post(route);
  const end = async () => {
    const { served } = await post(route);
    if (served !== '2') throw new Error(`workerd dropped ${route}: the memory reading is void`);
  };
  return { answer, end };
}

await Promise.race([
  measure({ name: 'workerd/loader', call, held, hold: 50, calls: 1000, pids: () => [workerd.pid], note: 'a dynamic worker per call; includes one loopback HTTP request' }),
  died,
]);
agent.destroy();
workerd.kill('SIGKILL');
await died.catch(() => {});
