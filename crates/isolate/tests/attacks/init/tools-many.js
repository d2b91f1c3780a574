// attack: Offers a hundred thousand tools with long descriptions.
// expect: init_failed | init_limit
// limits: init_cpu_ms=10000

// The surface is too large to be taken, or writing it needs more memory than there is.
const tools = { attack: { description: "the one that is called", run: () => ({ ran: true }) } };
for (let i = 0; i < 100_000; i++) tools[`tool${i}`] = { description: "d".repeat(1000), run: () => 1 };

export default { tools };
