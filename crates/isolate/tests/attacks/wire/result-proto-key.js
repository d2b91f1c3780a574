// attack: Returns members named like the prototype's, which a careless parser would set instead of store.
// expect: ok
// result: {"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"toString":1,"hasOwnProperty":2}

export default {
  tools: {
    attack: {
      description: "result proto key",
      input: { type: "object" },
      async run() {
        return JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"toString":1,"hasOwnProperty":2}');
      },
    },
  },
};
