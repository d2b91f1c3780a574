// attack: Throws null, which has neither a message nor a stack.
// expect: init_failed

export default { tools: { attack: { run: () => 1 } } };
throw null;
