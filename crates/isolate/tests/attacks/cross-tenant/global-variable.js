// attack: Leaves a global variable for the next call.
// expect: ok
// result: {"seen":false}
// calls: 3

const seen = "mark" in globalThis;
globalThis.mark = input;
return { seen };
