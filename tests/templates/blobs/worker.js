addEventListener("fetch", (event) => {
  const sum = new WebAssembly.Instance(ADD).exports.add(2, 3);
  event.respondWith(new Response(`${GREETING} ${NAME} ${sum} ${[...new Uint8Array(BYTES)]}`));
});
