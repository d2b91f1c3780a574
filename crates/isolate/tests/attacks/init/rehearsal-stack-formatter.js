// attack: Error.prepareStackTrace, and accessors on Error.prototype, never return for errors of code that is not the server's.
// expect: ok
// result: "called"
// calls: 20
// limits: init_time_ms=3000

let armed = false;
const spin = () => {
  if (armed) for (;;);
  return "";
};
Error.prepareStackTrace = spin;
Object.defineProperty(Error, "stackTraceLimit", { get: spin, configurable: true });
for (const kind of [Error, TypeError, ReferenceError, SyntaxError, RangeError]) {
  for (const name of ["name", "message", "stack", "toString"]) {
    Object.defineProperty(kind.prototype, name, { get: spin, set: spin, configurable: true });
  }
}

export default {
  get instructions() {
    armed = true;
  },
  tools: {
    attack: {
      run() {
        armed = false;
        return "called";
      },
    },
  },
};
