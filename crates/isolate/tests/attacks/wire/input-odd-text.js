// attack: Arguments with control characters, escapes and astral letters come in as they were sent and go out again.
// expect: ok
// result: {"text":"\u0000\u001b💣\"\\/","length":7}
// input: {"text":"\u0000\u001b\ud83d\udca3\"\\\/"}

return { text: input.text, length: input.text.length };
