// attack: Throws an error whose stack is a getter that never returns, to hang whoever words the refusal.
// expect: init_limit

export default { tools: { attack: { run: () => 1 } } };

throw Object.defineProperty(new Error("x"), "stack", {
  get() {
    for (;;);
  },
});
