// attack: A Request whose url, method and headers are overridden to say something else than what is inside.
// expect: ok
// result: {"refused":2}

export default {
  tools: {
    attack: {
      description: "fetch request subclass",
      input: { type: "object" },
      async run() {
        class Lying extends Request {
          get url() {
            return "https://allowed.example/";
          }
          get method() {
            return "GET";
          }
        }
        let refused = 0;
        for (const request of [new Lying("http://169.254.169.254/", { method: "POST", body: "x" }), new Proxy(new Request("http://h/"), {})]) {
          try {
            await fetch(request);
          } catch (error) {
            if (error instanceof TypeError) refused++;
          }
        }
        return { refused };
      },
    },
  },
};
