// worker_threads: a thread with its own isolate and Node environment per call. It shares the process and its rights.
import { Worker } from 'node:worker_threads';
import { INPUT, TRUSTED_TOOL, measure } from '../lib.mjs';

const code = `${TRUSTED_TOOL}
const { parentPort, workerData } = require('node:worker_threads');
parentPort.on('message', () => {});
parentPort.postMessage(run(workerData));`;

async function call() {
  const worker = new Worker(code, { eval: true, workerData: INPUT });
  const answer = await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
  return { answer, end: () => worker.terminate() };
}

await measure({ name: 'worker-threads/fresh', call, hold: 20, calls: 1000, note: 'no isolation from the host: the code has all of Node' });
