// A loop whose every step is a long operation inside V8, which checks for interrupts after a number of steps and not after a time.
// expect: cpu
// engine: may be replaced
export default {
  async fetch() {
    const text = JSON.stringify(new Array(1e5).fill(1));
    for (;;) JSON.parse(text);
  },
};
