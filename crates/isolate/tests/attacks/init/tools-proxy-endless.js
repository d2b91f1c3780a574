// attack: The list of tools is a proxy that makes up names as long as it is asked.
// expect: init_limit | init_failed

// Either the CPU budget ends the counting, or the surface is too large to be taken.
const tool = { description: "made up", run: () => 1 };
const names = Array.from({ length: 500_000 }, (_, i) => `t${i}`);

export default {
  tools: new Proxy(
    {},
    {
      ownKeys: () => names,
      getOwnPropertyDescriptor: () => ({ value: tool, enumerable: true, configurable: true }),
      get: () => tool,
    },
  ),
};
