// attack: Promise.prototype's `constructor` and `then`, and Promise's species, are accessors that spin after the surface was read.
// expect: ok
// result: "called"
// calls: 20
// limits: init_time_ms=3000

let armed = false;
const spin = (value) => ({
  configurable: true,
  get() {
    if (armed) for (;;);
    return value;
  },
});
const { then } = Promise.prototype;
Object.defineProperty(Promise.prototype, "constructor", spin(Promise));
Object.defineProperty(Promise.prototype, "then", spin(then));
Object.defineProperty(Promise, Symbol.species, spin(Promise));

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
