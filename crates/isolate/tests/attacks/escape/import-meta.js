// attack: Looks at import.meta for paths, for a resolver, and for whatever else the host left there.
// expect: ok
// result: {"paths":[],"functions":[]}

export default {
  tools: {
    attack: {
      description: "import meta",
      input: { type: "object" },
      async run() {
        const paths = [];
        const functions = [];
        for (const key of Reflect.ownKeys(import.meta)) {
          const value = import.meta[key];
          if (typeof value === "function") functions.push(String(key));
          if (typeof value === "string" && /^(?:file:|\/)/.test(value)) paths.push(value);
        }
        return { paths, functions };
      },
    },
  },
};
