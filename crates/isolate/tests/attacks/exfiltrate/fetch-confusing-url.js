// attack: Addresses that two parsers read as two hosts: user info, back slashes, tabs, fragments and percent signs.
// expect: ok
// result: {"refused":7}

export default {
  tools: {
    attack: {
      description: "fetch confusing url",
      input: { type: "object" },
      async run() {
        const addresses = ["http://allowed.example@169.254.169.254/", "http://169.254.169.254#@allowed.example/", "http:\\\\169.254.169.254\\x", "http://allowed.example:80\\@169.254.169.254/", "ht\ntp://169.254\t.169.254/", "http://169.254.169.254%2f@allowed.example/", "//169.254.169.254/"];
        let refused = 0;
        for (const address of addresses) {
          await fetch(address).catch((error) => {
            if (error instanceof TypeError) refused++;
          });
        }
        return { refused };
      },
    },
  },
};
