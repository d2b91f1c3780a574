// attack: The list of tools is a proxy that never names its keys.
// expect: init_limit

export default {
  tools: new Proxy(
    {},
    {
      ownKeys() {
        for (;;);
      },
    },
  ),
};
