// The module "#every-binding": imports the JavaScript half of every binding, atoll/bindings/<kind>/<kind>.js.
import { existsSync, readdirSync } from "node:fs";
import { resolve } from "node:path";

export function everyBinding(root) {
  const folder = resolve(root, "atoll/bindings");
  const kinds = readdirSync(folder).filter((kind) => existsSync(resolve(folder, kind, `${kind}.js`)));
  const contents = kinds.sort().map((kind) => `import "#bindings/${kind}/${kind}.js";\n`).join("");
  return {
    name: "every-binding",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^#every-binding$/ }, ({ path }) => ({ path, namespace: "every-binding" }));
      onLoad({ filter: /./, namespace: "every-binding" }, () => ({ contents, resolveDir: root }));
    },
  };
}
