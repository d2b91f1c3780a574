// attack: The default export is null.
// expect: init_failed

export default null;
