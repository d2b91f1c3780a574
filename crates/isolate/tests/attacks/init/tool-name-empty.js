// attack: A tool without a name, next to one of a thousand letters.
// expect: init_failed

export default { tools: { attack: { run: () => 1 }, "": { run: () => 2 }, ["n".repeat(1000)]: { run: () => 3 } } };
