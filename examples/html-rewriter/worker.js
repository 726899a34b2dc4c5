// Changes HTML on its way to the client: links open safely, a menu comes from another response, and visitors are greeted.
const PAGE = `<!doctype html>
<title>Shop</title>
<nav></nav>
<h1>Hello, <span class="name">stranger</span></h1>
<p>Read <a href="http://example.com/terms">the terms</a>.</p>
`;

const MENU = `<a href="/">Home</a> <a href="/cart">Cart</a>`;

export default {
  fetch(request) {
    const name = new URL(request.url).searchParams.get("name");
    const page = new Response(PAGE, { headers: { "content-type": "text/html; charset=utf-8" } });
    return new HTMLRewriter()
      .on("nav", new Menu())
      .on("a[href^='http:']", {
        element(link) {
          link.setAttribute("href", (link.getAttribute("href") ?? "").replace("http:", "https:"));
          link.setAttribute("rel", "noopener");
        },
      })
      .on(".name", {
        element(span) {
          if (name !== null) span.setInnerContent(name); // escaped
        },
      })
      .transform(page);
  },
};

class Menu {
  // The parser waits for the handler. A response is streamed into the page.
  async element(nav) {
    nav.append(await fetchMenu(), { html: true });
  }
}

async function fetchMenu() {
  return new Response(MENU); // or: return fetch("https://example.com/menu")
}
