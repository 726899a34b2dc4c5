// node tools/gen_html_rewriter.mjs <output>: the WebAssembly module of npm's html-rewriter-wasm, with a bound on its memory.
//
// The module declares no maximum, so a document could make it grow to the memory limit of the worker. lol-html in Cloudflare's
// runtime may use 3 MB. Here that is a bound on the whole memory of the module: its 19 pages, and twice 3 MB and a third, because
// a buffer that grows exists twice for a moment.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const MEMORY_SECTION = 5;
const EXTRA_PAGES = 112; // 7 MB

function readLength(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return [value, at];
  }
}

function writeLength(value) {
  const bytes = [];
  for (; value > 0x7f; value >>>= 7) bytes.push((value & 0x7f) | 0x80);
  return [...bytes, value];
}

function bounded(module) {
  for (let at = 8; at < module.length; ) {
    const [size, content] = readLength(module, at + 1);
    if (module[at] !== MEMORY_SECTION) {
      at = content + size;
      continue;
    }
    const [pages, end] = readLength(module, content + 2);
    if (module[content] !== 1 || module[content + 1] !== 0 || end !== content + size) throw new Error("one memory without a maximum was expected");
    const memory = [1, 1, ...writeLength(pages), ...writeLength(pages + EXTRA_PAGES)];
    return Buffer.concat([module.subarray(0, at), Buffer.from([MEMORY_SECTION, ...writeLength(memory.length), ...memory]), module.subarray(end)]);
  }
  throw new Error("the module has no memory");
}

const source = join(process.env.ATOLL_NODE_MODULES, "html-rewriter-wasm/dist/html_rewriter_bg.wasm");
const module = bounded(readFileSync(source));
if (!globalThis.WebAssembly.validate(module)) throw new Error("the changed module is not valid");
writeFileSync(process.argv[2], module);
