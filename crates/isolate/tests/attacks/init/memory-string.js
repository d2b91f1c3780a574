// attack: Initialises with one string larger than its memory.
// expect: init_limit
// limits: init_cpu_ms=5000

const huge = "x".repeat(2 ** 29 - 25);
const found = /y/.test(huge);

export default { tools: { attack: { run: () => found } } };
