// Top-level code in a built-in that cannot be interrupted: the deploy is refused.
// expect: refused in a built-in function that cannot be interrupted
// engine: replaced
[].indexOf.call({ length: 2 ** 53 - 1 }, 1);
export default { fetch: () => new Response() };
