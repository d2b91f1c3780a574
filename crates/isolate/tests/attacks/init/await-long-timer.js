// attack: Top-level await of a timer that fires next month.
// expect: init_limit
// limits: init_time_ms=300

await new Promise((resolve) => setTimeout(resolve, 2 ** 31 - 1));

export default { tools: { attack: { run: () => 1 } } };
