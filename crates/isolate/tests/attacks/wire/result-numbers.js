// attack: Returns the numbers at the edges: the largest, the smallest, those that are none, and minus zero.
// expect: ok
// result: {"max":1.7976931348623157e+308,"min":5e-324,"safe":9007199254740991,"unsafe":9007199254740992,"nan":null,"infinity":null,"zero":0}

return { max: Number.MAX_VALUE, min: Number.MIN_VALUE, safe: 2 ** 53 - 1, unsafe: 2 ** 53, nan: NaN, infinity: -Infinity, zero: -0 };
