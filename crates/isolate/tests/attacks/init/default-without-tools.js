// attack: The default export offers nothing at all.
// expect: init_failed

export default {};
