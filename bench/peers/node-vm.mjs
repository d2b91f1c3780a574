// node:vm: a new global object per call in the same isolate. Not a security boundary; Node's manual says so.
import vm from 'node:vm';
import { INPUT, TOOL, measure } from '../lib.mjs';

function call() {
  const context = vm.createContext({});
  const answer = JSON.parse(vm.runInContext(`${TOOL}; JSON.stringify(run(${JSON.stringify(INPUT)}))`, context, { timeout: 50 }));
  return { answer, end: () => context };
}

await measure({ name: 'node-vm/fresh', call, hold: 200, calls: 1000, note: 'no isolation: a new global object only; one thread, so 16 in flight queue' });
