// The module "#every-page" of the dashboard: the entries of all bindings that have pages there, atoll/bindings/<kind>/dashboard/entry.js.
// Nothing else names them, so a binding brings its pages in its own folder.
import { existsSync, readdirSync } from "node:fs";
import { resolve } from "node:path";

export function everyPage(root) {
  const folder = resolve(root, "atoll/bindings");
  const kinds = readdirSync(folder).filter((kind) => existsSync(resolve(folder, kind, "dashboard/entry.js"))).sort();
  const imports = kinds.map((kind, number) => `import { entry as e${number} } from ${JSON.stringify(resolve(folder, kind, "dashboard/entry.js"))};`);
  const contents = `${imports.join("\n")}\nexport const entries = [${kinds.map((_, number) => `e${number}`)}].sort((a, b) => a.order - b.order);\n`;
  return {
    name: "every-page",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^#every-page$/ }, ({ path }) => ({ path, namespace: "every-page" }));
      onLoad({ filter: /./, namespace: "every-page" }, () => ({ contents, resolveDir: root }));
    },
  };
}
