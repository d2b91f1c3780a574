// attack: Waits by reading the clock, hoping that calls into the host are not counted.
// expect: cpu_limit

const start = Date.now();
while (Date.now() < start + 60_000) performance.now();
return { waited: true };
