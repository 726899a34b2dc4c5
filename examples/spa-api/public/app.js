// Every path gets index.html; this script shows the page that belongs to the path.
const pages = {
  "/": async () => "Welcome",
  "/clock": async () => `On the server it is ${(await (await fetch("/api/time")).json()).time}`,
};

async function show(path) {
  const page = pages[path] ?? (async () => `There is no page ${path}`);
  document.querySelector("main").textContent = await page();
}

document.querySelector("nav").addEventListener("click", (event) => {
  if (event.target.tagName !== "A") return;
  event.preventDefault();
  history.pushState(null, "", event.target.href);
  show(location.pathname);
});
addEventListener("popstate", () => show(location.pathname));
show(location.pathname);
