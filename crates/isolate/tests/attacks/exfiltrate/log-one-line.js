// attack: Writes one line that is larger than the whole log may be.
// expect: log_limit
// limits: cpu_ms=2000

console.error("x".repeat(10_000_000));
await new Promise((resolve) => setTimeout(resolve, 1000));
return { logged: true };
