// A process per call: the input is a line on stdin, the answer a line on stdout, and the end of stdin is the end.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { INPUT, measure } from './lib.mjs';

/** Measures `program args…`, which answers one line and then waits for the end of its input. */
export async function measureProcess({ name, program, args, note }) {
  const live = new Set();
  process.on('exit', () => live.forEach(child => child.kill('SIGKILL')));

  async function call() {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const gone = once(child, 'exit').then(() => live.delete(child));
    live.add(child);
    child.stdin.write(`${JSON.stringify(INPUT)}\n`);
    const [line] = await Promise.race([
      once(createInterface(child.stdout), 'line'),
      gone.then(() => { throw new Error(`${program} ended without an answer`); }),
    ]);
    return { answer: JSON.parse(line), end: () => { child.stdin.end(); return gone; } };
  }

  await measure({ name, call, hold: 8, calls: 500, pids: () => [...live].map(child => child.pid), note });
}
