// attack: Reading `tools` of the default export throws.
// expect: init_failed
// message: no tools for you

export default {
  get tools() {
    throw new Error("no tools for you");
  },
};
