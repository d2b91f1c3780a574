// attack: Leaves half a character in a streaming decoder of the module.
// expect: ok
// result: {"text":""}
// calls: 3

const decoder = new TextDecoder();

export default {
  tools: {
    attack: {
      description: "text decoder",
      input: { type: "object" },
      async run() {
        // With a first byte left over from the call before, the second one would complete the character.
        const text = decoder.decode(new Uint8Array([0xe4]), { stream: true });
        decoder.decode(new Uint8Array([0xb8]), { stream: true });
        return { text };
      },
    },
  },
};
