// attack: Evaluates at once and then spins in microtasks before anybody can ask for its tools.
// expect: init_limit

(async () => {
  for (;;) await 0;
})();

export default { tools: { attack: { run: () => 1 } } };
