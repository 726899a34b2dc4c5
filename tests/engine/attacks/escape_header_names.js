// Header names of a megabyte, with NUL, with line breaks, with lone surrogates, and by the thousand, in requests and responses.
// expect: answer refused or exception
// limits: cpu_ms=3000
export default {
  async fetch() {
    const odd = ["x".repeat(1 << 20), "a\0b", "a\r\nb", "\ud800", "", ":", "a b", "Ā", "__proto__", "constructor", "content-length", "transfer-encoding"];
    for (const name of odd) {
      for (const value of ["1", "\0", "a\r\nset-cookie: x", "\ud800", "y".repeat(1 << 20)]) {
        const make = [() => new Headers([[name, value]]), () => new Response("", { headers: { [name]: value } }), () => fetch("http://127.0.0.1:1/", { headers: [[name, value]] })];
        for (const one of make) {
          try {
            await one();
          } catch {
            continue;
          }
        }
      }
    }
    const headers = new Headers();
    for (let i = 0; i < 20_000; i++) headers.set(`x-${i}`, "y");
    return new Response("refused", { headers });
  },
};
