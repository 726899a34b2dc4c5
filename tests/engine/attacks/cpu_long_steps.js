// A loop whose every step is a long one of V8's own: it looks up after so many steps, not after so much time.
// expect: cpu
// engine: may be replaced
export default {
  async fetch() {
    const text = JSON.stringify(new Array(1e5).fill(1));
    for (;;) JSON.parse(text);
  },
};
