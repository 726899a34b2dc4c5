// Errors with stacks of a million frames, all kept.
// expect: memory or cpu or exception
// limits: cpu_ms=5000 memory_mb=32
export default {
  fetch() {
    Error.stackTraceLimit = Infinity;
    const kept = [];
    const deep = (n) => (n === 0 ? kept.push(new Error("deep")) : deep(n - 1));
    for (;;) deep(5000);
  },
};
