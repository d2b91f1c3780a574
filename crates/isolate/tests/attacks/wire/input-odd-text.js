// attack: Arguments with control characters, separators and astral letters come in as they were sent and go out again.
// expect: ok
// result: {"text":"\u0000\u001b\u2028\ud83d\udca3\"\\\/","length":8}
// input: {"text":"\u0000\u001b\u2028\ud83d\udca3\"\\\/"}

return { text: input.text, length: input.text.length };
