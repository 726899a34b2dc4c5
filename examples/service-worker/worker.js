// The older syntax: no exports, but a listener for the fetch event. Environment variables are globals here.
/* global GREETING */
addEventListener("fetch", (event) => {
  event.respondWith(answer(event.request));
});

async function answer(request) {
  const { pathname } = new URL(request.url);
  return new Response(`${GREETING} from a service worker, you asked for ${pathname}\n`, {
    headers: { "content-type": "text/plain; charset=utf-8" },
  });
}
