// attack: Keeps distinct short strings, which no table shares.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

const keep = [];
for (let i = 0; i < Infinity; i++) keep.push(`string number ${i}`);
return { kept: keep.length };
