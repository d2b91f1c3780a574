// attack: Throws while it initialises; the author is told, the host goes on.
// expect: init_failed
// message: thrown on purpose

throw new Error("thrown on purpose");

export default { tools: { attack: { run: () => 1 } } };
