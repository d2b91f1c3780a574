// attack: Asks the host itself, by every name that its own network has for it.
// expect: ok
// result: {"refused":6}

export default {
  tools: {
    attack: {
      description: "fetch loopback",
      input: { type: "object" },
      async run() {
        const addresses = ["http://127.0.0.1/", "http://localhost:8080/admin", "http://[::1]/", "http://0.0.0.0/", "http://127.8.9.10:6379/", "http://localhost.localdomain:5432/"];
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
