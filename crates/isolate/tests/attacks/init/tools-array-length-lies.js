// attack: The list of tools is an array of four billion holes.
// expect: init_failed

const tools = [];
tools.length = 2 ** 32 - 1;

export default { tools };
