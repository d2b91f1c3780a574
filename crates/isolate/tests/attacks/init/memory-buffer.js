// attack: Initialises with a buffer larger than its memory.
// expect: init_limit
// limits: init_cpu_ms=5000

const huge = new ArrayBuffer(2 ** 33);

export default { tools: { attack: { run: () => huge.byteLength } } };
