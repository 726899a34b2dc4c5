// Bundles the web platform into one script: `node tools/build_web.mjs OUTFILE [--entry FILE]`.
//
// The engine compiles the result as the body of a function of one parameter, `native`, while it makes the snapshot; the
// body returns what the entry module exports as `entry`. Names are kept as they are: they appear in workers' stack traces.
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";
import { hideStreams } from "./hide_streams.mjs";

const root = resolve(import.meta.dirname, "..");
// CMake installs the packages into its build folder, so that the source tree stays as it was cloned.
const packages = process.env.ATOLL_NODE_MODULES ?? resolve(root, "node_modules");
const { build, transform } = createRequire(`${packages}/`)("esbuild");
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { entry: { type: "string", default: resolve(root, "web/worker/main.js") } },
});
const [outfile] = positionals;
if (outfile === undefined) {
  console.error("usage: node tools/build_web.mjs OUTFILE [--entry FILE]");
  process.exit(2);
}

// The built-in modules, and interfaces few workers use, that run when they are first asked for. The bundler takes the functions of a lazy ES module out of it,
// and each would be an object in every isolate; a CommonJS module it leaves whole, so they are made such modules here.
const LAZY = new RegExp(
  [
    String.raw`/web/node/(?!modules\.js|globals\.js)\w+\.js$`,
    String.raw`/web/crypto/(?!crypto\.js)\w+\.js$`,
    String.raw`/web/(url/pattern|file/file_reader|dom/progress_event|streams/transfer|performance_observer|worker/cloudflare_workers)\.js$`,
  ].join("|"),
);
const lazyModules = {
  name: "lazy-modules",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^\.\.?\/.*\.js$/ }, ({ path, resolveDir }) => {
      const file = resolve(resolveDir, path);
      return LAZY.test(file) ? { path: file, namespace: "lazy" } : undefined;
    });
    onLoad({ filter: /./, namespace: "lazy" }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), { format: "cjs", target: "es2024", sourcefile: path });
      return { contents: code, resolveDir: dirname(path) };
    });
  },
};

await mkdir(dirname(resolve(outfile)), { recursive: true });
await build({
  entryPoints: [resolve(values.entry)],
  outfile,
  bundle: true,
  format: "iife",
  globalName: "bundle",
  banner: { js: '"use strict";' },
  footer: { js: "return bundle.entry;" },
  platform: "neutral",
  mainFields: ["module", "main"],
  target: "es2024",
  // Every isolate holds this source: no comments and no indentation, and nothing beyond ASCII, since one such letter would
  // make V8 keep all of it at two bytes a letter. Short lines keep the positions in stack traces useful.
  minifyWhitespace: true,
  lineLimit: 120,
  charset: "ascii",
  legalComments: "inline",
  alias: { "#web": resolve(root, "web"), "#bindings": resolve(root, "atoll/bindings") },
  inject: [resolve(root, "web/streams/inject.js")],
  plugins: [hideStreams(resolve(root, "web/internal/native.js")), lazyModules],
  nodePaths: [packages],
  absWorkingDir: root,
  logLevel: "warning",
});
