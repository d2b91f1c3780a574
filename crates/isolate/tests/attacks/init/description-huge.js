// attack: A description of twenty megabytes, to be shown to every client that lists the tools.
// expect: init_failed
// limits: init_cpu_ms=5000

export default { tools: { attack: { description: "d".repeat(20_000_000), run: () => ({ ran: true }) } } };
