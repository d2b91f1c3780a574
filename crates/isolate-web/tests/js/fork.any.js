// Compartments are forks of one process: nothing random may be shared between them, nor the time origin.
const draw = () => [Math.random(), Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(8))]].join(" ");
test(() => {
  Math.random();
  const parent = [];
  const drawn = [];
  for (let i = 0; i < 20; i++) drawn.push(bulkhead.inFork(draw));
  for (let i = 0; i < 20; i++) parent.push(draw());
  const all = [...drawn, ...parent].flatMap((text) => text.split(" "));
  assert_true(drawn.every((text) => text.split(" ").length === 4));
  assert_equals(new Set(all).size, all.length);
}, "random values differ between forks");
promise_test(async () => {
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert_true(performance.now() >= 29);
  const [now, origin] = bulkhead.inFork(() => `${performance.now()} ${performance.timeOrigin}`).split(" ").map(Number);
  assert_true(now < 20, `performance.now() is ${now} in a new fork`);
  assert_true(origin >= performance.timeOrigin + 29);
}, "a fork begins to count time anew");
