// attack: Imports the file system of Node.
// expect: init_failed
// message: node:fs

import { readFileSync } from "node:fs";

export default { tools: { attack: { run: () => readFileSync("/etc/passwd", "utf8") } } };
