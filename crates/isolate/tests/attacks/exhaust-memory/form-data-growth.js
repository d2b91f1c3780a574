// attack: Appends entries to a form and turns it into a body.
// expect: memory_limit
// limits: memory_mb=32 cpu_ms=20000

export default {
  tools: {
    attack: {
      description: "form data growth",
      input: { type: "object" },
      async run() {
        const form = new FormData();
        for (let i = 0; i < 64; i++) form.append("field", "v".repeat(1 << 20));
        return { length: (await new Response(form).arrayBuffer()).byteLength };
      },
    },
  },
};
