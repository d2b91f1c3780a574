// attack: The classic catastrophic regular expression; the linear engine takes over and answers.
// expect: ok
// result: {"matched":false}

return { matched: /^(a+)+$/.test("a".repeat(50) + "b") };
