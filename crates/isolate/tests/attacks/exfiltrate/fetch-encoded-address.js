// attack: Writes loopback and metadata addresses in decimal, octal, hex, short, mapped and full-width forms.
// expect: ok
// result: {"refused":8}

export default {
  tools: {
    attack: {
      description: "fetch encoded address",
      input: { type: "object" },
      async run() {
        const addresses = ["http://2130706433/", "http://0177.0.0.1/", "http://0x7f.1/", "http://127.1/", "http://[::ffff:169.254.169.254]/", "http://[::ffff:7f00:1]/", "http://\uff11\uff12\uff17\u30020.0.1/", "http://\u2460\u2461\u2466.0.0.1/"];
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
