// attack: The global object's prototype is a proxy that never answers whether it has a name that nobody declared.
// expect: ok
// result: "called"
// calls: 20
// limits: init_time_ms=3000

let armed = false;
const spin = () => {
  if (armed) for (;;);
};
const beyond = new Proxy(Object.create(null), {
  has: spin,
  get: spin,
  set: spin,
  getOwnPropertyDescriptor: spin,
  getPrototypeOf: () => null,
});
try {
  Object.setPrototypeOf(globalThis, beyond);
} catch {
  Object.defineProperty(Object.prototype, "absent", { get: spin, configurable: true });
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
