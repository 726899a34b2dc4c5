// Bundles the web platform into one script: `node tools/build_web.mjs OUTFILE [--entry FILE]`.
//
// The engine compiles the result as the body of a function of one parameter, `native`, while it makes the snapshot; the
// body returns what the entry module exports as `entry`. What few workers need follows behind it (lazy_modules.mjs). Names are kept as they are: they appear in workers' stack traces.
import { appendFile, mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";
import { everyBinding } from "./every_binding.mjs";
import { hideStreams } from "./hide_streams.mjs";
import { buildLazyModules, sharedModules } from "./lazy_modules.mjs";

const root = resolve(import.meta.dirname, "..");
// CMake installs the packages into its build folder, so that the source tree stays as it was cloned.
const packages = process.env.ATOLL_NODE_MODULES ?? resolve(root, "node_modules");
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
  inject: [inject],
  plugins: [everyBinding(root), hideStreams(resolve(root, "web/internal/native.js")), sharedModules(lazy.shared, root)],
  nodePaths: [packages],
  absWorkingDir: root,
  logLevel: "warning",
});
await appendFile(outfile, lazy.text);
