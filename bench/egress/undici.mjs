// Asks a URL with undici: `node undici.mjs URL`. Each line of its input is a turn, `{"how", "lanes", "ms"}`, and each line of
// its output the turn's times. The end of the input is the end.
import { createInterface } from 'node:readline';
import { Pool, fetch, setGlobalDispatcher } from 'undici';

const url = new URL(process.argv[2]);
const headers = { 'accept-encoding': 'gzip, br, zstd, deflate', accept: '*/*', 'user-agent': 'bulkhead' };
// A connection for each lane, kept.
const pool = new Pool(url.origin, { connections: 16, pipelining: 1, keepAliveTimeout: 60_000 });
setGlobalDispatcher(pool);

const ways = {
  async request() {
    const { statusCode, body } = await pool.request({ path: url.pathname, method: 'GET', headers });
    return [statusCode, await body.text()];
  },
  async fetch() {
    const response = await fetch(url, { headers });
    return [response.status, await response.text()];
  },
};
const [, expected] = await ways.request();

async function turn({ how, lanes, ms }) {
  const ask = ways[how];
  const times = [];
  const begin = performance.now();
  const lane = async () => {
    for (let now = begin; now < begin + ms;) {
      const [status, text] = await ask();
      if (status !== 200 || text !== expected) throw new Error(`${status}: ${text}`);
      const then = now;
      now = performance.now();
      times.push((now - then) * 1000);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return { elapsed_us: (performance.now() - begin) * 1000, times_us: times };
}

for await (const line of createInterface(process.stdin)) console.log(JSON.stringify(await turn(JSON.parse(line))));
await pool.close();
