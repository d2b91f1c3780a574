// attack: Never finishes its initialisation.
// expect: init_limit

for (;;);

export default { tools: { attack: { run: () => 1 } } };
