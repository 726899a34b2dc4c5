// Top-level code that fills its memory: the deploy is refused.
// expect: refused memory limit
// limits: cpu_ms=1500 memory_mb=32
const all = [];
for (;;) all.push(new Array(1000).fill(1));
export default {};
