// attack: Object.prototype.toJSON never returns for any object that is not the server's own, as a rehearsed answer would be.
// expect: ok
// result: {"own":true}
// calls: 20
// limits: init_time_ms=3000

Object.prototype.toJSON = function () {
  if (Object.hasOwn(this, "double") || Object.hasOwn(this, "text")) for (;;);
  return this;
};

export default { tools: { attack: { run: () => ({ own: true }) } } };
