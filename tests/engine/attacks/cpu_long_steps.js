// A loop whose every step is a long one of V8's own: by itself it would look up after so many steps, not so much time.
// expect: cpu
export default {
  async fetch() {
    const text = JSON.stringify(new Array(1e5).fill(1));
    for (;;) JSON.parse(text);
  },
};
