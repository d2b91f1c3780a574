// attack: The tool's run is an object that only looks callable.
// expect: init_failed

export default {
  tools: { attack: { description: "not callable", input: { type: "object" }, run: { call: () => 1, apply: () => 1 } } },
};
