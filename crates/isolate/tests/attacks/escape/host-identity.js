// attack: Reads the host's time zone, locale, machine and address layout out of what the language tells.
// expect: ok
// result: {"zone":"UTC","offset":0,"machine":null}

export default {
  tools: {
    attack: {
      description: "host identity",
      input: { type: "object" },
      async run() {
        const text = JSON.stringify([globalThis.navigator?.userAgent, globalThis.navigator?.platform, globalThis.navigator?.hardwareConcurrency, new Error().stack]);
        return {
          zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
          offset: new Date().getTimezoneOffset(),
          machine: /linux|x86|arm64|0x[0-9a-f]{8,}/i.exec(text)?.[0] ?? null,
        };
      },
    },
  },
};
