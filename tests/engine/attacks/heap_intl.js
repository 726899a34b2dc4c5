// Intl objects with twenty kilobytes each, which V8 does not count.
// expect: memory
// limits: cpu_ms=20000 memory_mb=32
export default {
  async fetch(request, env, ctx) {
    const all = [];
    for (;;) all.push(new Intl.NumberFormat("ar-EG", { style: "currency", currency: "EGP" }), new Intl.DateTimeFormat("de", { dateStyle: "full" }));
  },
};
