// attack: Reaches the constructors of generators and of async generators.
// expect: ok
// result: {"refused":2}

let refused = 0;
for (const f of [function* () {}, async function* () {}]) {
  try {
    f.constructor("yield globalThis")().next();
  } catch (error) {
    if (error instanceof EvalError) refused++;
  }
}
return { refused };
