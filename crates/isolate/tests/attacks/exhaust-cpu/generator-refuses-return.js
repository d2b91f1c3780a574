// attack: A generator whose finally block never ends is closed by leaving a for-of loop.
// expect: cpu_limit

function* stubborn() {
  try {
    yield 1;
  } finally {
    for (;;);
  }
}

export default {
  tools: {
    attack: {
      description: "generator refuses return",
      input: { type: "object" },
      async run() {
        for (const value of stubborn()) {
          if (value === 1) break;
        }
        return { closed: true };
      },
    },
  },
};
