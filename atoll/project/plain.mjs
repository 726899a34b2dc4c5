// Takes a project as it is: follows the imports from its main module, and takes the types out of TypeScript.
//
// Reads one request per line, {main, folder, asItIs, base, modules}, and answers each with one line of JSON: {modules, inputs} or
// {bundle: why a bundler is needed} or {errors}. Types are replaced with spaces, so that every place keeps its line and column.
// `asItIs` is wrangler's no_bundle: the code is the output of another bundler, and nothing in it asks for ours. `modules` are
// files that are modules without an import: [path, type of the rule].
import { existsSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, extname, relative, resolve, sep } from "node:path";
import { createInterface } from "node:readline";
import { SourceTextModule } from "node:vm";

const KINDS = {
  ".js": "esm", ".mjs": "esm", ".ts": "esm", ".mts": "esm", ".cjs": "commonjs",
  ".json": "json", ".txt": "text", ".html": "text", ".sql": "text", ".bin": "data", ".wasm": "wasm",
};
const BUILT_IN = /^(node|cloudflare|atoll):|^__STATIC_CONTENT_MANIFEST$/;
const NEEDS_BUNDLER = [
  [/\bimport\s*\(/, "it imports while it runs"],
  [/\bprocess\.env\.NODE_ENV\b/, "it asks for process.env.NODE_ENV"],
  [/\brequire\s*\(|\bmodule\.exports\b/, "it has CommonJS in it"],
];

const KINDS_OF_RULES = { ESModule: "esm", CommonJS: "commonjs", Text: "text", Data: "data", CompiledWasm: "wasm" };
const DYNAMIC = /\bimport\s*\(\s*["'](\.{1,2}\/[^"'\n]+)["']/g;
const REQUIRE = /\brequire\s*\(\s*["']([^"'\n]+)["']\s*\)/g;

class Bundle extends Error {}

class Wrong extends Error {
  constructor(text, file, place) {
    super(text);
    this.diagnostic = { text, file, ...place };
  }
}

// The place in a message of node's type stripper: ":line", some lines of code, and carets below the last of them.
function placeIn(stack) {
  const lines = stack.split("\n");
  const carets = lines.findIndex((line) => /^ *\^+$/.test(line));
  const line = Number(/:(\d+)$/.exec(lines[0])?.[1] ?? 0);
  if (carets < 1) return { line, line_text: "", column: 1, length: 1 };
  return { line, line_text: lines[carets - 1], column: lines[carets].indexOf("^") + 1, length: lines[carets].trim().length };
}

function stripped(source, file, folder) {
  try {
    return stripTypeScriptTypes(source, { mode: "strip" });
  } catch (error) {
    if (error.code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") throw new Bundle(error.message);
    throw new Wrong(error.message, relative(folder, file), placeIn(error.stack));
  }
}

function importsOf(code, file, folder) {
  try {
    return new SourceTextModule(code, { identifier: file }).moduleRequests.map((request) => request.specifier);
  } catch (error) {
    stripped(code, file, folder); // it says where, V8 does not
    throw new Wrong(`${error.name}: ${error.message}`, relative(folder, file), { line: 0, column: 0, line_text: "", length: 1 });
  }
}

/** A CommonJS module as an ES module that exports `module.exports`. Its lines keep their numbers. */
function wrapped(source) {
  const required = [...new Set([...source.matchAll(REQUIRE)].map((match) => match[1]))];
  const imports = required.map((name, i) => `import * as __required${i} from ${JSON.stringify(name)};`).join("");
  const table = required.map((name, i) => `${JSON.stringify(name)}:__required${i}.default??__required${i}`).join(",");
  const head = `${imports}const __table={${table}};const module={exports:{}};(function(module,exports,require){`;
  const missing = `(name)=>{if(Object.hasOwn(__table,name))return __table[name];throw Object.assign(new Error("Cannot find module '"+name+"'"),{code:"MODULE_NOT_FOUND"})}`;
  return `${head}${source}\n}).call(module.exports,module,module.exports,${missing});export default module.exports;`;
}

function codeOf(bytes, kind, file, folder) {
  const source = bytes.toString("utf8");
  if (kind === "commonjs") return wrapped(source);
  return /\.m?ts$/.test(file) ? stripped(source, file, folder) : source;
}

function walk({ main, folder, asItIs, modules }) {
  const found = new Map();
  const types = new Map(modules.map(([file, type]) => [file, KINDS_OF_RULES[type]]));
  const waiting = [...[...types.keys()].map((file) => [file, null]), [main, null]];
  while (waiting.length > 0) {
    const [file, from] = waiting.pop();
    if (found.has(file)) continue;
    const kind = types.get(file) ?? KINDS[extname(file)];
    if (kind === undefined) throw new Bundle(`${relative(folder, file)} is no plain script`);
    let bytes;
    try {
      bytes = readFileSync(file);
    } catch (error) {
      if (from !== null) throw new Bundle(`${relative(folder, from)} imports what is not there`); // the bundler says where
      throw new Wrong(`${relative(folder, file)} cannot be read: ${error.code}`, "", {});
    }
    if (kind !== "esm" && kind !== "commonjs") {
      found.set(file, { kind, bytes });
      continue;
    }
    if (!asItIs) {
      if (kind === "commonjs") throw new Bundle("it has CommonJS in it");
      for (const [pattern, why] of NEEDS_BUNDLER) if (pattern.test(bytes.toString("utf8"))) throw new Bundle(why);
    }
    const code = codeOf(bytes, kind, file, folder);
    found.set(file, { kind: "esm", bytes: Buffer.from(code), map: asItIs && kind === "esm" ? mapOf(file) : "" });
    const dynamic = asItIs ? [...code.matchAll(DYNAMIC)].map((match) => match[1]).filter((name) => existsSync(resolve(dirname(file), name))) : [];
    for (const specifier of [...importsOf(code, file, folder), ...dynamic]) {
      if (BUILT_IN.test(specifier)) continue;
      if (/^\.\.?\//.test(specifier)) waiting.push([resolve(dirname(file), specifier), file]);
      else if (!asItIs) throw new Bundle(`it imports ${specifier}`);
    }
  }
  return found;
}

/** The source map that the other bundler wrote beside a file. */
function mapOf(file) {
  try {
    const text = readFileSync(`${file}.map`, "utf8");
    return typeof JSON.parse(text).mappings === "string" ? text : "";
  } catch {
    return "";
  }
}

// What the paths of modules begin at: the project's folder, or a folder above it when an import leads out of it.
function baseOf(files, folder) {
  let base = folder;
  while (files.some((file) => relative(base, file).startsWith(".."))) base = dirname(base);
  return base;
}

function answer(request) {
  try {
    const found = walk(request);
    const base = baseOf([...found.keys()], request.base);
    const pathOf = (file) => relative(base, file).split(sep).join("/");
    const modules = [...found].map(([file, { kind, bytes, map = "" }]) => ({ path: pathOf(file), kind, base64: bytes.toString("base64"), map }));
    return { main: pathOf(request.main), modules, inputs: [...found.keys()] };
  } catch (error) {
    if (error instanceof Bundle) return { bundle: error.message };
    if (error instanceof Wrong) return { errors: [error.diagnostic] };
    throw error;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`);
}
