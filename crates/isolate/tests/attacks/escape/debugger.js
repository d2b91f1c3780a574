// attack: Stops at a breakpoint, in case somebody left a debugger attached.
// expect: ok
// result: {"passed":true}

debugger;
return { passed: true };
