// attack: Looks for eval under its computed name on the global object and up its prototype chain.
// expect: ok
// result: {"found":false}

const name = ["e", "v", "a", "l"].join("");
let found = false;
for (let object = globalThis; object !== null; object = Object.getPrototypeOf(object)) {
  if (Reflect.ownKeys(object).includes(name)) found = true;
}
return { found };
