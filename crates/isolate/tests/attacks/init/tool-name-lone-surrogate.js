// attack: A tool whose name is half of a surrogate pair, which has no UTF-8 form.
// expect: init_failed

export default { tools: { attack: { run: () => 1 }, "\ud800": { run: () => 2 } } };
