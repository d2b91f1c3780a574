// attack: Uses a string of 256 MB as a property name, which V8 must flatten, hash and keep.
// expect: memory_limit
// limits: cpu_ms=5000

const table = {};
table["k".repeat(2 ** 28)] = 1;
return { keys: Object.keys(table).length };
