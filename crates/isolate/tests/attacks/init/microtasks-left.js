// attack: Reading the surface queues promises that never end; they must be paid for by the initialisation.
// expect: init_limit
// message: init_cpu_ms
// limits: init_cpu_ms=100 init_time_ms=30000

export default {
  get instructions() {
    const again = () => {
      Promise.resolve().then(again);
    };
    again();
  },
  tools: { attack: { run: () => 1 } },
};
