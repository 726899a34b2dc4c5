// A response of half a gigabyte of text, which takes no memory until it is read.
// expect: exception Not enough memory
export default { fetch: () => new Response("x".repeat(2 ** 29 - 100)) };
