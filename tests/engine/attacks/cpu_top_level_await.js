// Top-level code that waits and then never ends.
// expect: refused top-level code used
await new Promise((resolve) => setTimeout(resolve, 5));
for (;;);
export default {};
