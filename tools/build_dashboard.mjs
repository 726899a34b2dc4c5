// Bundles the dashboard: `node tools/build_dashboard.mjs OUTDIR`.
//
// Every file has the hash of its content in its name, so browsers may keep it for ever, and is there three times: plain,
// gzip and brotli. `index.json` names the files that the page starts with; charts and the pages of bindings are fetched when they
// are shown. Sources below atoll/bindings use the parts of the dashboard as "#dashboard/…".
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, resolve } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { everyPage } from "./every_page.mjs";
import { packagesFrom } from "./packages_from.mjs";

const root = resolve(import.meta.dirname, "..");
const packages = resolve(process.env.ATOLL_NODE_MODULES ?? resolve(root, "node_modules"));
const { build } = createRequire(`${packages}/`)("esbuild");
const outdir = process.argv[2];
if (outdir === undefined) {
  console.error("usage: node tools/build_dashboard.mjs OUTDIR");
  process.exit(2);
}

await rm(outdir, { recursive: true, force: true });
await mkdir(outdir, { recursive: true });
const { metafile } = await build({
  entryPoints: { app: resolve(root, "dashboard/main.js"), style: resolve(root, "dashboard/style.css") },
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  outdir: resolve(outdir),
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "browser",
  target: ["chrome111", "firefox114", "safari16.4"],
  minify: true,
  charset: "utf8",
  legalComments: "none", // licences.txt has the licences
  metafile: true,
  alias: { "#dashboard": resolve(root, "dashboard") },
  plugins: [everyPage(root), packagesFrom(packages)],
  absWorkingDir: root,
  logLevel: "warning",
});

const entries = {};
for (const [path, { entryPoint }] of Object.entries(metafile.outputs)) {
  if (entryPoint === "dashboard/main.js") {
    entries.script = basename(path);
    entries.preload = neededBy(path).map((each) => basename(each));
  }
  if (entryPoint === "dashboard/style.css") entries.style = basename(path);
}

/** The modules that a module imports, directly or not. */
function neededBy(path, found = new Set()) {
  for (const { path: next, kind } of metafile.outputs[path].imports) {
    if (kind !== "import-statement" || found.has(next)) continue;
    found.add(next);
    neededBy(next, found);
  }
  return [...found];
}

for (const name of await readdir(outdir)) {
  const content = await readFile(resolve(outdir, name));
  await writeFile(resolve(outdir, `${name}.gz`), gzipSync(content, { level: 9 }));
  await writeFile(resolve(outdir, `${name}.br`), brotliCompressSync(content));
}
await writeFile(resolve(outdir, "index.json"), JSON.stringify(entries));
