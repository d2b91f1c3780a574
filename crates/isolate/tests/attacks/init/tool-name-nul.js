// attack: A tool whose name holds a NUL byte and a line break, to cut names short or to forge a log line.
// expect: init_failed

export default { tools: { attack: { run: () => 1 }, "attack\u0000\nlevel=error": { run: () => 2 } } };
