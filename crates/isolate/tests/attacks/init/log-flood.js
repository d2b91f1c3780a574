// attack: Logs without end while it initialises, when no call's log limit applies.
// expect: init_limit

for (;;) console.log("x".repeat(1000));

export default { tools: { attack: { run: () => 1 } } };
