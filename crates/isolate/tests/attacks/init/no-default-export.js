// attack: Exports its tools, but not as the default export.
// expect: init_failed

export const tools = { attack: { run: () => 1 } };
