// Arithmetic on numbers of ten thousand digits.
// expect: cpu
export default {
  async fetch() {
    let x = 3n ** 20000n;
    const modulus = 10n ** 10000n - 1n;
    for (;;) x = BigInt(((x * x) % modulus).toString()) + 1n;
  },
};
