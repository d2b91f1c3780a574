// attack: One product of two BigInts of 2^26 bits.
// expect: cpu_limit

const big = (1n << (1n << 26n)) - 1n;
return { positive: big * big > 0n };
