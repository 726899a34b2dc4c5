// Bundles the web platform into one script: `node tools/build_web.mjs OUTFILE [--entry FILE]`.
//
// The engine compiles the result as the body of a function with one parameter, `native`, when it creates the snapshot. The body
// returns the export `entry` of the entry module. Modules that few workers need follow behind it (lazy_modules.mjs). Names are
// kept, because they appear in workers' stack traces.
import { mkdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";
import { keepClassNames } from "./class_names.mjs";
import { everyBinding } from "./every_binding.mjs";
import { hideStreams } from "./hide_streams.mjs";
import { buildLazyModules, sharedModules } from "./lazy_modules.mjs";
import { packagesFrom } from "./packages_from.mjs";

const root = resolve(import.meta.dirname, "..");
// CMake installs the packages into its build folder, so that the source tree stays as it was cloned.
const packages = resolve(process.env.ATOLL_NODE_MODULES ?? resolve(root, "node_modules"));
const { build } = createRequire(`${packages}/`)("esbuild");
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { entry: { type: "string", default: resolve(root, "web/worker/main.js") } },
});
const [outfile] = positionals;
if (outfile === undefined) {
  console.error("usage: node tools/build_web.mjs OUTFILE [--entry FILE]");
  process.exit(2);
}

const inject = resolve(root, "web/streams/inject.js");
const lazy = await buildLazyModules(build, { root, packages, inject });

await mkdir(dirname(resolve(outfile)), { recursive: true });
const { outputFiles } = await build({
  entryPoints: [resolve(values.entry)],
  outfile,
  write: false,
  bundle: true,
  format: "iife",
  globalName: "bundle",
  banner: { js: '"use strict";' },
  // engine_process.py puts the bindings of a host program in place of the comment.
  footer: { js: "/* host bindings */\nreturn bundle.entry;" },
  platform: "neutral",
  mainFields: ["module", "main"],
  target: "es2024",
  // Every isolate holds this source, so it has no comments and no indentation. It is pure ASCII, since one other character would
  // make V8 store all of it with two bytes per character. Short lines keep the positions in stack traces useful.
  minifyWhitespace: true,
  lineLimit: 120,
  charset: "ascii",
  legalComments: "inline",
  alias: { "#web": resolve(root, "web"), "#bindings": resolve(root, "atoll/bindings") },
  inject: [inject],
  plugins: [everyBinding(root), hideStreams(resolve(root, "web/internal/native.js")), sharedModules(lazy.shared, root), packagesFrom(packages)],
  absWorkingDir: root,
  logLevel: "warning",
});
await writeFile(outfile, keepClassNames(outputFiles[0].text) + lazy.text);
