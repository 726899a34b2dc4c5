// The modules of the web platform that are loaded on first use.
//
// They are in no isolate's heap. Each becomes the text of a function of (require, module, exports). All texts follow the main
// bundle in one file, behind a mark and a table of their positions. web/internal/lazy.js is the other half. `shared()`, a
// function that is generated here, passes them what they import from the main bundle.
import { readFile } from "node:fs/promises";
import { globSync, readFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { keepClassNames } from "./class_names.mjs";
import { packagesFrom } from "./packages_from.mjs";

// Keep in step with engine/src/isolate/snapshot.cc.
const MARK = "\n//# atoll:lazy\n";

const LAZY = [
  /^node\/(?!modules\.js|globals\.js)\w+\.js$/,
  /^(console_format|console_table)\.js$/,
  /^crypto\/(?!(crypto|errors|idl|key|registry|subtle)\.js)\w+\.js$/,
  /^dom\/(broadcast_channel|cloned_errors|message_event|message_port|observable\w*|progress_event|trigger_events)\.js$/,
  /^email\/\w+\.js$/,
  /^encoding\/(bytes_text|labels|text_streams)\.js$/,
  /^fetch\/(content_coding|event_source|event_stream|integrity)\.js$/,
  /^file\/(file_reader|multipart|object_url)\.js$/,
  /^html\/\w+\.js$/,
  /^streams\/(compression|gated|identity|transfer)\.js$/,
  /^objects\/(alarm_name|auto_response|console|facets|gate|keys|life|limits|live|socket_api|sockets|sql|state|storage)\.js$/,
  /^internal\/inspect\w*\.js$/,
  /^sockets\/\w+\.js$/,
  /^rpc\/\w+\.js$/,
  /^workflow\/\w+\.js$/,
  /^worker\/(cloudflare_global|cloudflare_workers|tracing|fixed_flags\.gen|parcel|platform_parts|socket_port|thrown)\.js$/,
  /^(performance_entries|performance_node|performance_observer|precise_sum|url\/(pattern\w*|ascii_hosts))\.js$/,
];

// Workers have what readable-stream polyfills for browsers: it uses ours.
const OURS = {
  "abort-controller": "node/abort_controller.js",
  buffer: "node/buffer.js",
  events: "node/events.js",
  "process/": "node/process.js",
  "string_decoder/": "node/string_decoder.js",
};

const isLazy = (key) => LAZY.some((pattern) => pattern.test(key));

/** The names a module of ours exports. */
function exportsOf(file) {
  const source = readFileSync(file, "utf8");
  const names = new Set();
  for (const [, name] of source.matchAll(/^export (?:async )?(?:function\*?|class|const|let) (\w+)/gm)) names.add(name);
  for (const [, list] of source.matchAll(/^export \{([^}]*)\}/gm)) {
    for (const item of list.split(",")) {
      const name = item.trim().split(/\s+as\s+/).at(-1);
      if (name !== "") names.add(name);
    }
  }
  if (/^export (const|let) \{/m.test(source)) throw new Error(`${file}: what is destructured cannot be shared with lazy modules`);
  return [...names];
}

/** Builds all of them. Returns `{ text, shared }`: the text behind the main bundle, and the source of the module "#shared". */
export async function buildLazyModules(build, { root, packages, inject }) {
  const web = resolve(root, "web");
  const keyOf = (file) => relative(web, file).replaceAll("\\", "/");
  const files = globSync("**/*.js", { cwd: web }).filter(isLazy).sort();
  const sharedKeys = new Set();
  // Only packages are bundled: other modules are required by their keys.
  const byKey = {
    name: "by-key",
    setup({ onResolve }) {
      onResolve({ filter: /./ }, ({ path, kind, importer, resolveDir }) => {
        if (kind === "entry-point") return undefined;
        if (importer.includes("readable-stream") && OURS[path] !== undefined) return { path: OURS[path], external: true };
        const isBinding = path.startsWith("#bindings/");
        if (importer.includes("node_modules") || !(isBinding || path.startsWith("."))) return undefined;
        const key = keyOf(isBinding ? resolve(root, "atoll", path.slice(1)) : resolve(resolveDir, path));
        if (importer !== "" && resolve(importer) === resolve(inject)) return share(key);
        return isLazy(key) ? { path: key, external: true } : share(key);
      });
    },
  };
  const share = (key) => {
    sharedKeys.add(key);
    return { path: key, external: true };
  };
  const { outputFiles } = await build({
    entryPoints: files.map((file) => resolve(web, file)),
    outdir: "/lazy",
    outbase: web,
    bundle: true,
    write: false,
    format: "cjs",
    platform: "neutral",
    mainFields: ["module", "main"],
    target: "es2024",
    minifyWhitespace: true,
    lineLimit: 120,
    charset: "ascii",
    legalComments: "inline",
    inject: [inject],
    plugins: [byKey, packagesFrom(packages)],
    absWorkingDir: root,
    logLevel: "warning",
  });
  // ";key,start,end;key,start,end;": one string to search, since an object would be in every heap.
  let table = ";";
  let texts = "";
  for (const file of outputFiles) {
    const { path } = file;
    const text = keepClassNames(file.text);
    table += `${relative("/lazy", path).replaceAll("\\", "/")},${texts.length},${texts.length + text.length};`;
    texts += text;
  }
  const keys = [...sharedKeys].sort();
  const modules = keys.map((key, index) => {
    const names = exportsOf(resolve(web, key));
    const local = names.map((name) => `${name} as m${index}_${name}`).join(", ");
    return {
      import: `import { ${local} } from ${JSON.stringify(resolve(web, key))};`,
      entry: `${JSON.stringify(key)}: () => ({ ${names.map((name) => `${name}: m${index}_${name}`).join(", ")} })`,
    };
  });
  const shared = `${modules.map((module) => module.import).join("\n")}
    export const shared = () => ({ __proto__: null, ${modules.map((module) => module.entry).join(",\n")} });`;
  return { text: `${MARK}${table}\n${texts}`, shared };
}

/** A plugin for the main bundle: provides the module "#shared" and keeps lazy modules out. */
export function sharedModules(shared, root) {
  const web = resolve(root, "web");
  return {
    name: "shared-modules",
    setup({ onLoad, onResolve }) {
      onResolve({ filter: /^#shared$/ }, () => ({ path: "shared", namespace: "shared" }));
      onLoad({ filter: /./, namespace: "shared" }, () => ({ contents: shared, resolveDir: web }));
      onLoad({ filter: /[\\/]web[\\/].*\.js$/ }, async ({ path }) => {
        const key = relative(web, path).replaceAll("\\", "/");
        if (isLazy(key)) return { errors: [{ text: `${key} is a lazy module: ask for it with lazy("${key}")` }] };
        return { contents: await readFile(path, "utf8"), loader: "js" };
      });
    },
  };
}
