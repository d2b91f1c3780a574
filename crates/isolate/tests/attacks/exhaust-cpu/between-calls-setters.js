// attack: A call of a shared compartment leaves setters and species behind that spin when the host prepares the next call.
// expect: ok
// result: {call}
// calls: 5
// boundary: session

let calls = 0;
let armed = false;
const spin = {
  configurable: true,
  get() {
    if (armed) for (;;);
    return undefined;
  },
  set() {
    if (armed) for (;;);
  },
};

export default {
  tools: {
    attack: {
      run() {
        armed = false;
        if (calls === 0) {
          for (const name of ["id", "server", "operation", "uri", "variables", "signal", "0", "1", "meta", "body"]) {
            Object.defineProperty(Object.prototype, name, spin);
          }
          Object.defineProperty(Array, Symbol.species, spin);
          Object.defineProperty(Array.prototype, Symbol.iterator, spin);
        }
        armed = true;
        return calls++;
      },
    },
  },
};
