// attack: Churns through many times its memory in buffers that it does not keep: garbage must not count for ever.
// expect: ok
// result: {"allocated":400}
// limits: memory_mb=64 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "array buffers garbage",
      input: { type: "object" },
      async run() {
        let allocated = 0;
        for (let i = 0; i < 400; i++) allocated += new Uint8Array(2 ** 20).fill(1)[i];
        return { allocated };
      },
    },
  },
};
