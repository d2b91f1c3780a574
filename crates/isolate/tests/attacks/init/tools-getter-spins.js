// attack: Reading `tools` of the default export never returns.
// expect: init_limit

export default {
  get tools() {
    for (;;);
  },
};
