// attack: Solves V8's generator for its state while it initialises, and predicts what every forked call will draw.
// expect: ok
// result: {"predicted":false}
// calls: 3
// limits: init_cpu_ms=10000 cpu_ms=1000

// V8's Math.random is xorshift128+ over GF(2), served from a cache of 64 in reverse: four neighbours give away
// the 128 bits of state. Each bit of state is followed as a mask of the unknown bits it depends on.
const MASK = (1n << 64n) - 1n;
const step = ([a, b]) => {
  a ^= (a << 23n) & MASK;
  a ^= a >> 17n;
  a ^= b;
  a ^= b >> 26n;
  return [b, a];
};
const shifted = (bits, by) => bits.map((_, i) => bits[i - by] ?? 0n);
const plus = (x, y) => x.map((bit, i) => bit ^ y[i]);
const symbolicStep = ([a, b]) => {
  a = plus(a, shifted(a, 23));
  a = plus(a, shifted(a, -17));
  a = plus(a, b);
  a = plus(a, shifted(b, -26));
  return [b, a];
};
const mantissa = (value) => BigInt(Math.round(value * 2 ** 53));
const output = (a) => Number(a >> 11n) / 2 ** 53;

function solve(outputs) {
  const unknown = Array.from({ length: 128 }, (_, i) => 1n << BigInt(i));
  let state = [unknown.slice(0, 64), unknown.slice(64)];
  const rows = [];
  for (const value of outputs) {
    const known = mantissa(value);
    for (let bit = 11; bit < 64; bit++) rows.push(state[0][bit] | (((known >> BigInt(bit - 11)) & 1n) << 128n));
    state = symbolicStep(state);
  }
  let solution = 0n;
  const pivots = [];
  for (let bit = 0; bit < 128; bit++) {
    const at = rows.findIndex((row, i) => i >= pivots.length && (row >> BigInt(bit)) & 1n);
    if (at < 0) return undefined;
    const pivot = rows[at];
    rows[at] = rows[pivots.length];
    rows[pivots.length] = pivot;
    for (let i = 0; i < rows.length; i++) if (i !== pivots.length && (rows[i] >> BigInt(bit)) & 1n) rows[i] ^= pivot;
    pivots.push(bit);
  }
  pivots.forEach((bit, i) => (solution |= (rows[i] >> 128n) << BigInt(bit)));
  return [solution & MASK, solution >> 64n];
}

const drawn = Array.from({ length: 160 }, Math.random);
const predictions = new Set();
for (let i = 0; i + 4 < 80 && predictions.size === 0; i += 16) {
  const window = drawn.slice(i, i + 5).reverse();
  let state = solve(window.slice(0, 4));
  if (state === undefined) continue;
  const start = state;
  for (let n = 0; n < 4; n++) state = step(state);
  if (output(state[0]) !== window[4]) continue;
  state = start;
  for (let n = 0; n < 1000; n++) {
    predictions.add(output(state[0]));
    state = step(state);
  }
}
for (const value of drawn) predictions.delete(value);

export default {
  tools: {
    attack: {
      description: "random predicted",
      input: { type: "object" },
      async run() {
        let predicted = false;
        for (let i = 0; i < 200; i++) if (predictions.has(Math.random())) predicted = true;
        return { predicted };
      },
    },
  },
};
