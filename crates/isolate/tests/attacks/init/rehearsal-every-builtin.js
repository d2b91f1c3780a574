// attack: Every function and accessor that can be reached from the global object is replaced by one that spins while no call runs.
// expect: ok
// result: {call}
// calls: 20
// boundary: server
// limits: init_time_ms=3000 init_cpu_ms=2000 cpu_ms=500

const { apply, construct, ownKeys, getOwnPropertyDescriptor, defineProperty, getPrototypeOf } = Reflect;
let armed = false;
let calls = 0;
const seen = new Set([globalThis]);
const waiting = [globalThis];
const hooked = (original) =>
  function (...given) {
    if (armed) for (;;);
    return new.target === undefined ? apply(original, this, given) : construct(original, given);
  };

while (waiting.length > 0) {
  const holder = waiting.pop();
  const reach = (value) => {
    if ((typeof value === "object" || typeof value === "function") && value !== null && !seen.has(value)) {
      seen.add(value);
      waiting.push(value);
    }
  };
  reach(getPrototypeOf(holder));
  for (const key of ownKeys(holder)) {
    const found = getOwnPropertyDescriptor(holder, key);
    if (found === undefined) continue;
    reach(found.value);
    reach(found.get);
    reach(found.set);
  }
}
for (const holder of seen) {
  for (const key of ownKeys(holder)) {
    const found = getOwnPropertyDescriptor(holder, key);
    if (found === undefined || !found.configurable) continue;
    const { value, get, set } = found;
    if (get !== undefined || set !== undefined) {
      defineProperty(holder, key, { ...found, get: get && hooked(get), set: set && hooked(set) });
    } else {
      // Also what is no function: that it is read is enough.
      const read = () => {
        if (armed) for (;;);
        return value;
      };
      defineProperty(holder, key, { get: read, set: read, configurable: true, enumerable: found.enumerable });
    }
  }
}

const server = { __proto__: null, tools: { __proto__: null, attack: { __proto__: null } } };
server.tools.attack.run = () => {
  armed = false;
  const call = calls++;
  armed = true;
  return call;
};
defineProperty(server, "instructions", {
  get() {
    armed = true;
  },
});

export default server;
