// A Deno process per call, without any permission.
import { fileURLToPath } from 'node:url';
import { measureProcess } from '../process.mjs';

const path = relative => fileURLToPath(new URL(relative, import.meta.url));
process.env.DENO_NO_UPDATE_CHECK = '1';

await measureProcess({
  name: 'deno/process',
  program: path('../node_modules/@deno/linux-x64-glibc/deno'),
  args: ['run', '--quiet', '--no-prompt', '--no-config', '--no-lock', '--no-remote', '--no-npm', path('deno-tool.mjs')],
  note: "a process of its own; Deno's permissions (none given), no operating-system jail",
});
