// attack: Searches the context, the input and the globals for names and values that look like secrets.
// expect: ok
// result: {"found":[]}

export default {
  tools: {
    attack: {
      description: "secrets in reach",
      input: { type: "object" },
      async run(input, ctx) {
        const found = [];
        const SECRET = /secret|passw|token|credential|apikey|api_key|authorization|BEGIN .*PRIVATE/i;
        for (const [name, holder] of Object.entries({ ctx, input, globalThis })) {
          for (const key of Reflect.ownKeys(holder)) {
            const value = Reflect.getOwnPropertyDescriptor(holder, key).value;
            if (SECRET.test(String(key)) || (typeof value === "string" && SECRET.test(value))) found.push(`${name}.${String(key)}`);
          }
        }
        return { found };
      },
    },
  },
};
