// attack: Returns many small members that together exceed a small limit.
// expect: result_limit
// limits: result_kb=4 cpu_ms=1000

return Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`key${i}`, i]));
