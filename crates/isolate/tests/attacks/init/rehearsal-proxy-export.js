// attack: The default export, its tools and the tool itself are proxies all of whose traps spin once the surface was read.
// expect: ok
// result: "called"
// calls: 20
// limits: init_time_ms=3000

let armed = false;
const traps = {};
for (const name of Object.getOwnPropertyNames(Reflect)) {
  traps[name] = (...given) => {
    if (armed && name !== "apply") for (;;);
    return Reflect[name](...given);
  };
}
const guarded = (target) => new Proxy(target, traps);
const run = guarded(() => {
  armed = false;
  return "called";
});

export default guarded({
  get instructions() {
    armed = true;
  },
  tools: guarded({ attack: guarded({ run }) }),
});
