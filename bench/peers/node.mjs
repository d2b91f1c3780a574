// A Node process per call.
import { TRUSTED_TOOL } from '../lib.mjs';
import { measureProcess } from '../process.mjs';

const code = `${TRUSTED_TOOL}
const fs = require('node:fs'), buffer = Buffer.alloc(4096);
fs.writeSync(1, JSON.stringify(run(JSON.parse(buffer.toString('utf8', 0, fs.readSync(0, buffer))))) + '\\n');
fs.readSync(0, buffer);`;

await measureProcess({ name: 'node/process', program: process.execPath, args: ['-e', code], note: 'a process of its own, with all rights of the user' });
