// What every peer shares: the tool, the clock, the statistics, the memory reading.
// A peer says how to make one sandbox and call it once; `measure` does the rest and prints one JSON line.
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

export const INPUT = { price: 45 };
/** Tries to reach the host first, as untrusted code would. */
export const TOOL =
  'function run(input) { try { return { env: process.env } } catch (e) { return { doublePrice: input.price * 2 } } }';
/** The same sum for peers that hand `process` to the code they run. */
export const TRUSTED_TOOL = 'function run(input) { return { doublePrice: input.price * 2 } }';

const IN_FLIGHT = 16;
const QUICK = process.env.BENCH_QUICK === '1';

/** Nearest-rank percentile. */
export function percentile(values, rank) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * rank) - 1)];
}

/** Private memory (USS) of the processes, in KB: what would be free again without them. */
export function privateKb(pids) {
  return pids.map(pid => {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    return [...rollup.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+) kB$/gm)].reduce((sum, match) => sum + Number(match[1]), 0);
  }).reduce((sum, kb) => sum + kb, 0);
}

/** One call: the clock stops at the answer; `end` then takes the sandbox down. */
async function timed(call) {
  const begin = performance.now();
  const { answer, end } = await call();
  const ms = performance.now() - begin;
  if (!isDeepStrictEqual({ ...answer }, { doublePrice: 90 })) throw new Error(`wrong answer: ${JSON.stringify(answer)}`);
  return { ms, end };
}

/** Keeps `lanes` calls in flight until `calls` are done or `seconds` have passed. Throughput includes taking down. */
async function load(call, lanes, calls, seconds) {
  const times = [];
  const begin = performance.now();
  const deadline = begin + seconds * 1000;
  let started = 0;
  const lane = async () => {
    while (started < calls && performance.now() < deadline) {
      started += 1;
      const { ms, end } = await timed(call);
      times.push(ms);
      await end();
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return { times, perSecond: times.length / ((performance.now() - begin) / 1000) };
}

/** How much private memory grows with `hold` live sandboxes that have served one call each, per sandbox. */
async function memoryPerSandbox(call, hold, pids) {
  globalThis.gc?.();
  const before = privateKb(pids());
  const held = [];
  try {
    for (let i = 0; i < hold; i += 1) held.push(await timed(call));
    globalThis.gc?.();
    return (privateKb(pids()) - before) / hold;
  } finally {
    for (const { end } of held) await end();
  }
}

const rounded = (value, digits) => Number(value.toFixed(digits));

/**
 * Measures a peer and prints its row.
 *   call     () → { answer, end }: a fresh sandbox, called once; `end` takes it down
 *   inFlight the same for 16 at once, where that is another API; default `call`
 *   held     the same for the memory reading, where a sandbox must be told to stay; default `call`
 *   hold     how many sandboxes to hold for the memory reading
 *   pids     the processes whose memory counts, asked before and after
 */
export async function measure({ name, call, inFlight = call, held = call, hold, calls, pids = () => ['self'], note }) {
  const scale = QUICK ? 0.2 : 1;
  const count = Math.ceil(calls * scale);
  await load(call, 1, Math.min(20, count), 1);
  const memory = await memoryPerSandbox(held, Math.ceil(hold * scale), pids);
  const one = await load(call, 1, count, 3 * scale);
  const many = await load(inFlight, IN_FLIGHT, count, 2 * scale);
  console.log(JSON.stringify({
    name,
    p50_ms: rounded(percentile(one.times, 0.5), 3),
    p99_ms: rounded(percentile(one.times, 0.99), 3),
    calls_per_s: rounded(one.perSecond, 1),
    memory_kb: Math.round(memory),
    concurrent16_calls_per_s: rounded(many.perSecond, 1),
    concurrent16_p50_ms: rounded(percentile(many.times, 0.5), 3),
    calls: one.times.length,
    note,
  }));
}
