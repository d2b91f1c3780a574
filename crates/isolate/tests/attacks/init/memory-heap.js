// attack: Fills the heap while it initialises.
// expect: init_limit
// limits: memory_mb=32 init_cpu_ms=20000

const keep = [];
for (;;) keep.push([keep.length]);

export default { tools: { attack: { run: () => keep.length } } };
