// attack: Overflows the stack while it initialises.
// expect: init_failed
// message: Maximum call stack size exceeded

const dive = () => dive() + 1;
dive();

export default { tools: { attack: { run: () => 1 } } };
