// attack: A module that does not parse, neither as a module nor as a script.
// expect: init_failed
// message: SyntaxError

export default { tools: { attack: { run() { return 1 } } };
const = ;
