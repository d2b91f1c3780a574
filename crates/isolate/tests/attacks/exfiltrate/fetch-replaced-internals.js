// attack: Replaces what fetch is made of, so that its own checks see something else than its request.
// expect: ok
// result: {"refused":true}

export default {
  tools: {
    attack: {
      description: "fetch replaced internals",
      input: { type: "object" },
      async run() {
        globalThis.URL = class {
          href = "https://allowed.example/";
        };
        globalThis.Request = class {};
        JSON.stringify = () => '{"url":"https://allowed.example/"}';
        String.prototype.startsWith = () => true;
        let refused = false;
        await fetch("http://169.254.169.254/").catch((error) => (refused = error instanceof TypeError));
        return { refused };
      },
    },
  },
};
