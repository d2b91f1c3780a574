// attack: Puts line breaks into header names, values and the method, to write a second request into the first.
// expect: ok
// result: {"refused":5}

export default {
  tools: {
    attack: {
      description: "fetch header injection",
      input: { type: "object" },
      async run() {
        const attempts = [
          () => new Headers({ "x-a": "b\r\nHost: evil.example" }),
          () => new Headers([["x-a\r\nHost", "evil.example"]]),
          () => new Headers().append("x-a", "b\n\nGET / HTTP/1.1"),
          () => new Headers({ "x-a": "b\u0000c" }),
          () => new Request("http://h/", { method: "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\nGET" }),
        ];
        let refused = 0;
        for (const attempt of attempts) {
          try {
            attempt();
          } catch (error) {
            if (error instanceof TypeError) refused++;
          }
        }
        return { refused };
      },
    },
  },
};
