// attack: One call of reverse on an array with one element at index 4e9: V8 never checks for an interrupt.
// expect: cpu_limit

const holes = [];
holes[4e9] = 1;
return { length: holes.reverse().length };
