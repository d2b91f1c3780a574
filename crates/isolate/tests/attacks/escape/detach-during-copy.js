// attack: Detaches a buffer between the check of a native copy's arguments and the copy itself.
// expect: ok
// result: {"outcomes":["TypeError","undefined","TypeError"]}

export default {
  tools: {
    attack: {
      description: "detach during copy",
      input: { type: "object" },
      async run() {
        const outcome = (f) => {
          try {
            return typeof f();
          } catch (error) {
            return error.name;
          }
        };
        const fresh = () => new Uint8Array(1024);
        const detach = (bytes, value) => ({
          valueOf() {
            bytes.buffer.transfer();
            return value;
          },
        });
        const a = fresh();
        const b = fresh();
        const c = fresh();
        return {
          outcomes: [
            outcome(() => a.copyWithin(0, detach(a, 512))),
            outcome(() => void (b[0] = detach(b, 7))),
            outcome(() => new DataView(c.buffer).setFloat64(detach(c, 1000), 1)),
          ],
        };
      },
    },
  },
};
