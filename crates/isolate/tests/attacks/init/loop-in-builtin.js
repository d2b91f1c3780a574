// attack: Never finishes its initialisation, inside a builtin that V8 cannot interrupt.
// expect: init_limit
// limits: init_cpu_ms=100

Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);

export default { tools: { attack: { run: () => 1 } } };
