export const typeOf = (path) => (path.endsWith(".html") ? "text/html" : "text/plain");
