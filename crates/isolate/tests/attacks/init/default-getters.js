// attack: Getters of the default export spin from the second time on that they are read: only the host's reading once more shows.
// expect: ok
// result: 1
// calls: 20
// limits: init_time_ms=3000

const once = (value) => {
  let reads = 0;
  return () => {
    // The description is checked and then shown, so twice is the server's own initialisation.
    if (++reads > 4) for (;;);
    return value;
  };
};
const tool = Object.defineProperty({}, "run", { get: once(() => 1), enumerable: true });
const tools = Object.defineProperty({}, "attack", { get: once(tool), enumerable: true });

export default Object.defineProperty({}, "tools", { get: once(tools), enumerable: true });
