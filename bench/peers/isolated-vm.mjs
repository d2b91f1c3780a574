// isolated-vm: V8 isolates inside one Node process. `fresh`, `snapshot` or `prepared` (made before the request).
// One at a time it uses the synchronous API, which is its quicker one; 16 in flight need the asynchronous one.
import ivm from 'isolated-vm';
import { INPUT, TOOL, measure } from '../lib.mjs';

const variant = process.argv[2];
const snapshot = variant === 'snapshot' ? ivm.Isolate.createSnapshot([{ code: TOOL }]) : undefined;
const source = snapshot ? 'return run($0)' : `${TOOL}; return run($0)`;
const options = { arguments: { copy: true }, result: { copy: true }, timeout: 50 };

const isolate = () => new ivm.Isolate({ memoryLimit: 128, snapshot });

function call() {
  const sandbox = isolate();
  const context = sandbox.createContextSync();
  return { answer: context.evalClosureSync(source, [INPUT], options), end: () => sandbox.dispose() };
}

async function inFlight() {
  const sandbox = isolate();
  const context = await sandbox.createContext();
  return { answer: await context.evalClosure(source, [INPUT], options), end: () => sandbox.dispose() };
}

async function prepare() {
  const sandbox = isolate();
  const context = await sandbox.createContext();
  return { sandbox, run: await context.evalClosure(`${TOOL}; return run`, [], { result: { reference: true } }) };
}

/** Calls an isolate that waits; the next one is made when this one is taken down, off the clock. */
const prepared = (ready, apply) => async () => {
  const { sandbox, run } = ready.pop();
  const answer = await run[apply](undefined, [INPUT], options);
  return { answer, end: async () => { sandbox.dispose(); ready.push(await prepare()); } };
};

const row = { name: `isolated-vm/${variant}`, hold: 50, calls: 1000 };
if (variant === 'prepared') {
  const ready = await Promise.all(Array.from({ length: 16 }, prepare));
  await measure({
    ...row,
    call: prepared(ready, 'applySync'),
    inFlight: prepared(ready, 'apply'),
    held: async () => prepared([await prepare()], 'applySync')(),
    note: 'isolate, context and tool made before the request; in-process, no jail',
  });
} else {
  await measure({ ...row, call, inFlight, note: `isolate and context ${snapshot ? 'from a snapshot ' : ''}per call; in-process, no jail` });
}
