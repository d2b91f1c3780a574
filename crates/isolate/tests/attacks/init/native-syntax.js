// attack: Uses V8's own intrinsics, which only a flag would allow.
// expect: init_failed
// message: SyntaxError

%DebugPrint(globalThis);
export default { tools: { attack: { run: () => %GetOptimizationStatus(() => {}) } } };
