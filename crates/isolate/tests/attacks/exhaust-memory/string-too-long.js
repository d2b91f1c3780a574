// attack: Asks for a string beyond V8's maximum; refused as an error, not an abort.
// expect: tool_error
// message: Invalid string length

return { length: "x".padEnd(2 ** 30).length };
