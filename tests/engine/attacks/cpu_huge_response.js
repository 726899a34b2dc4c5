// A response of half a gigabyte of text, which costs nothing until somebody looks at it.
// expect: exception Not enough memory
export default { fetch: () => new Response("x".repeat(2 ** 29 - 100)) };
