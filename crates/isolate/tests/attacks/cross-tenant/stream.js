// attack: Leaves a chunk in a stream of the module.
// expect: ok
// result: {"chunk":"nothing"}
// calls: 3

let controller;
const stream = new ReadableStream({
  start(c) {
    controller = c;
  },
});

export default {
  tools: {
    attack: {
      description: "stream",
      input: { type: "object" },
      async run() {
        const reader = stream.getReader();
        const late = new Promise((resolve) => setTimeout(resolve, 5, { value: "nothing" }));
        const { value } = await Promise.race([reader.read(), late]);
        controller.enqueue("left behind");
        controller.enqueue("left behind");
        return { chunk: value };
      },
    },
  },
};
