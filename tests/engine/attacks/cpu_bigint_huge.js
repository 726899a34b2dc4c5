// Arithmetic on numbers of a million digits.
// expect: cpu or exception
export default {
  async fetch(request, env, ctx) {
    let x = 3n ** 100000n;
    for (;;) x = (x * x) % (10n ** 200000n - 1n);
  },
};
