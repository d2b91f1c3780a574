// attack: Fetches files, sockets and old protocols.
// expect: ok
// result: {"refused":8}

export default {
  tools: {
    attack: {
      description: "fetch other schemes",
      input: { type: "object" },
      async run() {
        const addresses = ["file:///etc/passwd", "file://localhost/proc/self/environ", "ftp://evil.example/", "gopher://127.0.0.1:6379/_FLUSHALL", "unix:///var/run/docker.sock", "http+unix://%2Fvar%2Frun%2Fdocker.sock/info", "ws://evil.example/", "javascript:1"];
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
