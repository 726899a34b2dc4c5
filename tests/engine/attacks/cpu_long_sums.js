// Sums of numbers of a million digits, one after the other.
// expect: cpu
// engine: may be replaced
export default {
  async fetch() {
    const large = (1n << 3000000n) - 1n;
    for (;;) large + 1n;
  },
};
