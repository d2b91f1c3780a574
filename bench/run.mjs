#!/usr/bin/env node
// Measures Bulkhead's isolate wall and its peers, one after the other, and holds Bulkhead to two promises.
// Usage: node bench/run.mjs [--only NAME]... [--quick] [--write-docs]      How to read it: docs/benchmarks.md
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const path = relative => fileURLToPath(new URL(relative, import.meta.url));
const ROOT = path('..');
const NODE = process.env.BENCH_NODE || path('../target/v8/node/bin/node');
const OURS = 'bulkhead';
const OUR_PROGRAM = path('../target/release/bench-isolate');
/** `a/b` is `peers/a.mjs b`. Ours stand beside the peer that they are held against. */
const NAMES = [
  'isolated-vm/fresh', OURS, 'isolated-vm/snapshot', 'isolated-vm/prepared', 'node-vm/fresh',
  'workerd/loader', 'worker-threads/fresh', 'deno/process', 'node/process',
];
const COLUMNS = [
  ['p50_ms', 'p50 ms'], ['p99_ms', 'p99 ms'], ['calls_per_s', 'calls/s'], ['memory_kb', 'memory KB'],
  ['concurrent16_calls_per_s', '16 at once: calls/s'], ['concurrent16_p50_ms', '16 at once: p50 ms'], ['calls', 'calls'],
];
const PROMISES = [['p50_ms', '≤', 5, (ours, bound) => ours <= bound], ['memory_kb', '<', 2, (ours, bound) => ours < bound]];
const DOCS = path('../docs/benchmarks.md');
const MARKED = /(<!-- isolate:begin -->\n)[^]*(<!-- isolate:end -->)/;

function fail(code, message, hint) {
  console.error(`error: ${message}${hint ? `\nhint: ${hint}` : ''}`);
  process.exit(code);
}

function options() {
  try {
    const { values } = parseArgs({
      options: { only: { type: 'string', multiple: true }, quick: { type: 'boolean' }, 'write-docs': { type: 'boolean' } },
    });
    return values;
  } catch (error) {
    return fail(64, error.message, 'node bench/run.mjs [--only NAME]... [--quick] [--write-docs]');
  }
}

const matches = (wanted, name) => wanted === name || name.startsWith(`${wanted}/`);

/** Runs a program in a process group of its own, for at most two minutes, and leaves nothing of the group behind. */
async function rowsOf(program, args, quick) {
  const child = spawn(program, args, {
    cwd: ROOT, detached: true, stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, BENCH_QUICK: quick ? '1' : '0' },
  });
  const sweep = () => { try { process.kill(-child.pid, 'SIGKILL'); } catch { /* nobody is left */ } };
  const timer = setTimeout(sweep, 120_000);
  const signals = ['SIGINT', 'SIGTERM'];
  const stop = () => { sweep(); process.exit(130); };
  signals.forEach(signal => process.once(signal, stop));
  let text = '';
  child.stdout.setEncoding('utf8').on('data', chunk => { text += chunk; });
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  clearTimeout(timer);
  signals.forEach(signal => process.off(signal, stop));
  sweep();
  if (code !== 0) throw new Error(`ended with ${code ?? 'a signal'}`);
  const rows = text.split('\n').filter(line => line.startsWith('{')).map(line => JSON.parse(line));
  const bad = rows.find(row => typeof row.name !== 'string' || !(row.p50_ms >= 0) || !(row.p99_ms >= 0));
  if (bad || rows.length === 0) throw new Error(`printed no valid row: ${JSON.stringify(bad)}`);
  return rows;
}

/** Our own rows; undefined, loudly, where the program has not been built. */
function ourRows(quick) {
  const command = process.env.BULKHEAD_BENCH;
  if (command) return rowsOf('/bin/sh', ['-c', command], quick);
  if (existsSync(OUR_PROGRAM)) return rowsOf(OUR_PROGRAM, [], quick);
  console.error(`\n*** NO BULKHEAD ROWS: ${OUR_PROGRAM} does not exist and BULKHEAD_BENCH is not set. ***\n*** Only the peers are measured, and no promise is checked. ***\n`);
  return undefined;
}

async function measureAll({ only, quick }) {
  const rows = [];
  const failures = [];
  for (const name of NAMES) {
    if (only && !only.some(wanted => matches(wanted, name) || (name === OURS && matches(OURS, wanted)))) continue;
    console.error(`measuring ${name}`);
    const [peer, variant] = name.split('/');
    try {
      const measured = await (name === OURS ? ourRows(quick) : rowsOf(NODE, ['--expose-gc', path(`peers/${peer}.mjs`), variant], quick));
      rows.push(...(measured ?? []).filter(row => !only || only.some(wanted => matches(wanted, row.name))));
    } catch (error) {
      failures.push(name);
      console.error(`error: ${name} ${error.message}`);
    }
  }
  return { rows, failures };
}

function machine() {
  const [node, v8] = execFileSync(NODE, ['-p', 'process.version + " " + process.versions.v8'], { encoding: 'utf8' }).trim().split(' ');
  const { dependencies } = JSON.parse(readFileSync(path('package.json'), 'utf8'));
  return {
    cpu: os.cpus()[0].model.trim(), cores: os.cpus().length, kernel: os.release(), memory_gb: Math.round(os.totalmem() / 2 ** 30),
    load_1m: Number(os.loadavg()[0].toFixed(2)), node, v8, packages: dependencies, date: new Date().toISOString().slice(0, 10),
  };
}

const cells = row => [row.name, ...COLUMNS.map(([key]) => (row[key] == null ? '–' : String(row[key])))];
const HEAD = ['', ...COLUMNS.map(([, title]) => title)];

function aligned(rows) {
  const table = [HEAD, ...rows.map(cells)];
  const widths = HEAD.map((_, column) => Math.max(...table.map(line => line[column].length)));
  return table.map(line => line.map((cell, i) => (i ? cell.padStart(widths[i]) : cell.padEnd(widths[i]))).join('  ')).join('\n');
}

function markdown({ machine: m, rows }) {
  const about = `${m.cpu}, ${m.cores} cores, ${m.memory_gb} GB, Linux ${m.kernel}, load ${m.load_1m} at the start; Node ${m.node} (V8 ${m.v8}); `
    + `${Object.entries(m.packages).map(pair => pair.join(' ')).join(', ')}; ${m.date}.`;
  const line = list => `| ${list.join(' | ')} |`;
  const missing = rows.some(row => matches(OURS, row.name)) ? [] : ['', '**Bulkhead itself was not measured in this run.**'];
  const table = [line([...HEAD, 'note']), line(HEAD.map((_, i) => (i ? '--:' : '---')).concat('---'))];
  return [about, ...missing, '', ...table, ...rows.map(row => line([...cells(row), row.note ?? ''])), ''].join('\n');
}

function writeDocs(result) {
  const text = readFileSync(DOCS, 'utf8');
  if (!MARKED.test(text)) fail(2, `${DOCS} has lost its isolate:begin and isolate:end markers`);
  writeFileSync(DOCS, text.replace(MARKED, (_, begin, end) => begin + markdown(result) + end));
}

/** Ratios within one run only: absolute times say more about the machine than about the code. */
function checkPromises(rows) {
  const ours = rows.find(row => row.name === 'bulkhead/call');
  const peer = rows.find(row => row.name === 'isolated-vm/fresh');
  return PROMISES.map(([key, sign, divisor, holds]) => {
    const promise = `promise: bulkhead/call ${key} ${sign} isolated-vm/fresh ${key} / ${divisor}`;
    if (!ours || !peer) { console.log(`${promise}: not checked`); return true; }
    const bound = peer[key] / divisor;
    const kept = holds(ours[key], bound);
    console.log(`${promise}: ${ours[key]} ${sign} ${bound.toFixed(3)} ${kept ? 'ok' : 'MISSED'}`);
    return kept;
  }).every(Boolean);
}

const chosen = options();
if (chosen['write-docs'] && (chosen.only || chosen.quick)) fail(64, '`--write-docs` needs a whole run', 'leave out `--only` and `--quick`');
const unknown = chosen.only?.find(wanted => !matches(OURS, wanted) && !NAMES.some(name => matches(wanted, name)));
if (unknown) fail(64, `there is no \`${unknown}\` to measure`, `one of ${NAMES.join(', ')}`);
try {
  execFileSync(path('setup.sh'), { stdio: ['ignore', 'inherit', 'inherit'] });
} catch { fail(2, 'the peers could not be made ready (see above)'); }

const about = machine();
const { rows, failures } = await measureAll(chosen);
const result = { machine: about, quick: Boolean(chosen.quick), rows };
mkdirSync(path('../target/bench'), { recursive: true });
writeFileSync(path('../target/bench/isolate.json'), `${JSON.stringify(result, null, 2)}\n`);
console.log(aligned(rows));
const kept = checkPromises(rows);
if (failures.length > 0) fail(2, `not measured: ${failures.join(', ')}`);
if (chosen['write-docs']) writeDocs(result);
process.exit(kept ? 0 : 1);
