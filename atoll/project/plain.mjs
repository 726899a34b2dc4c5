// Takes a project as it is: follows the imports from its main module, and takes the types out of TypeScript.
//
// Reads one request per line, {main, folder}, and answers each with one line of JSON: {modules, inputs} or
// {bundle: why a bundler is needed} or {errors}. Types are replaced with spaces, so that every place keeps its line and column.
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, extname, relative, resolve, sep } from "node:path";
import { createInterface } from "node:readline";
import { SourceTextModule } from "node:vm";

const KINDS = {
  ".js": "esm", ".mjs": "esm", ".ts": "esm", ".mts": "esm",
  ".json": "json", ".txt": "text", ".html": "text", ".sql": "text", ".bin": "data", ".wasm": "wasm",
};
const BUILT_IN = /^(node|cloudflare|atoll):/;
const NEEDS_BUNDLER = [
  [/\bimport\s*\(/, "it imports while it runs"],
  [/\bprocess\.env\.NODE_ENV\b/, "it asks for process.env.NODE_ENV"],
  [/\brequire\s*\(|\bmodule\.exports\b/, "it has CommonJS in it"],
];

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

function walk({ main, folder }) {
  const found = new Map();
  const waiting = [[main, null]];
  while (waiting.length > 0) {
    const [file, from] = waiting.pop();
    if (found.has(file)) continue;
    const kind = KINDS[extname(file)];
    if (kind === undefined) throw new Bundle(`${relative(folder, file)} is no plain script`);
    let bytes;
    try {
      bytes = readFileSync(file);
    } catch (error) {
      if (from !== null) throw new Bundle(`${relative(folder, from)} imports what is not there`); // the bundler says where
      throw new Wrong(`${relative(folder, file)} cannot be read: ${error.code}`, "", {});
    }
    if (kind !== "esm") {
      found.set(file, { kind, bytes });
      continue;
    }
    const source = bytes.toString("utf8");
    for (const [pattern, why] of NEEDS_BUNDLER) if (pattern.test(source)) throw new Bundle(why);
    const code = /\.m?ts$/.test(file) ? stripped(source, file, folder) : source;
    found.set(file, { kind, bytes: Buffer.from(code) });
    for (const specifier of importsOf(code, file, folder)) {
      if (BUILT_IN.test(specifier)) continue;
      if (!/^\.\.?\//.test(specifier)) throw new Bundle(`it imports ${specifier}`);
      waiting.push([resolve(dirname(file), specifier), file]);
    }
  }
  return found;
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
    const base = baseOf([...found.keys()], request.folder);
    const modules = [...found].map(([file, { kind, bytes }]) => ({
      path: relative(base, file).split(sep).join("/"), kind, base64: bytes.toString("base64"),
    }));
    return { modules, inputs: [...found.keys()] };
  } catch (error) {
    if (error instanceof Bundle) return { bundle: error.message };
    if (error instanceof Wrong) return { errors: [error.diagnostic] };
    throw error;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`);
}
