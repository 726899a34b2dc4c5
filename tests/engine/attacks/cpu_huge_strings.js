// Strings of half a gigabyte, which take no memory until they are read, as arguments of every API that takes a string.
// expect: answer RangeError RangeError RangeError RangeError RangeError RangeError RangeError RangeError RangeError RangeError ok
const huge = "x".repeat(2 ** 29 - 100);
const ways = [
  () => new Headers().append("a", huge), () => new Headers([[huge, "a"]]), () => new Response("", { headers: { a: huge } }),
  () => new Request("http://x/", { method: huge }), () => new Response("", { statusText: huge }), () => new TextEncoder().encode(huge), () => atob(huge),
  () => btoa(huge), () => new Blob([huge]), () => new URLSearchParams(huge), () => console.log(huge, { huge }),
];
const names = () => ways.map((way) => {
  try {
    way();
    return "ok";
  } catch (error) {
    return error.name;
  }
});
export default { fetch: () => new Response(names().join(" ")) };
