// attack: Asks machines of the host's private networks, link-local and carrier addresses included.
// expect: ok
// result: {"refused":6}

export default {
  tools: {
    attack: {
      description: "fetch private",
      input: { type: "object" },
      async run() {
        const addresses = ["http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.1.1/", "http://[fe80::1]/", "http://[fc00::1]/", "http://100.64.0.1/"];
        let refused = 0;
        for (const address of addresses) {
          await fetch(address).catch((error) => {
            if (error instanceof TypeError && error.message.includes("egress")) refused++;
          });
        }
        return { refused };
      },
    },
  },
};
