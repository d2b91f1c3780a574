// attack: Returns a BigInt, which JSON has no form for.
// expect: tool_error
// message: BigInt

return { big: 2n ** 64n };
