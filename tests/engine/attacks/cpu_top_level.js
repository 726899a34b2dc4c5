// Top-level code without end: the deploy is refused.
// expect: refused top-level code used
for (;;);
export default {};
