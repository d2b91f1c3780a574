// attack: Top-level await of a promise that nobody can settle.
// expect: init_failed
// message: top-level await

await new Promise(() => {});

export default { tools: { attack: { run: () => 1 } } };
