// Writes the indexes of the Encoding standard as C++ tables: `node tools/gen_encodings.mjs OUTFILE`.
// https://encoding.spec.whatwg.org/#indexes
//
// The tables are constants of the engine's addon, so no isolate holds a copy. The data comes from the npm package text-encoding,
// which was generated from the standard. Later changes of the standard are below.
import { mkdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";

const packages = process.env.ATOLL_NODE_MODULES ?? resolve(import.meta.dirname, "../node_modules");
const { "encoding-indexes": indexes } = createRequire(`${packages}/`)("text-encoding/lib/encoding-indexes.js");
const [outfile] = process.argv.slice(2);
if (outfile === undefined) {
  console.error("usage: node tools/gen_encodings.mjs OUTFILE");
  process.exit(2);
}

// GB18030-2022 assigned code points to 18 places that had private ones before: pointer, first code points.
const CHANGED = [
  [7182, [0xfe10, 0xfe12, 0xfe11, 0xfe13, 0xfe14, 0xfe15, 0xfe16]],
  [7201, [0xfe17, 0xfe18]], [7208, [0xfe19]], [23775, [0x9fb4]], [23783, [0x9fb5]], [23788, [0x9fb6, 0x9fb7]],
  [23795, [0x9fb8]], [23812, [0x9fb9]], [23829, [0x9fba]], [23845, [0x9fbb]],
];
for (const [pointer, codes] of CHANGED) {
  codes.forEach((code, i) => {
    const before = indexes.gb18030[pointer + i];
    if (before !== code && (before < 0xe000 || before > 0xf8ff)) throw new Error(`gb18030: ${pointer} is not private`);
    indexes.gb18030[pointer + i] = code;
  });
}

function list(numbers) {
  const lines = [];
  for (let i = 0; i < numbers.length; i += 20) lines.push(`    ${numbers.slice(i, i + 20).map((n) => n ?? 0).join(",")},`);
  return lines.join("\n");
}

function table(name, type, numbers) {
  return `constexpr ${type} ${name}[] = {\n${list(numbers)}\n};\n`;
}

const single = Object.entries(indexes).filter(([, index]) => index.length === 128);
const parts = [
  "// Made by tools/gen_encodings.mjs: the indexes of the Encoding standard. 0 stands for no code point.\n",
  table("kBig5", "uint32_t", indexes.big5), // has code points beyond 16 bits
  table("kEucKr", "uint16_t", indexes["euc-kr"]),
  table("kGb18030", "uint16_t", indexes.gb18030),
  table("kJis0208", "uint16_t", indexes.jis0208),
  table("kJis0212", "uint16_t", indexes.jis0212),
  table("kGb18030Ranges", "uint32_t", indexes["gb18030-ranges"].flat()), // pointer, code point
  "struct SingleByte {\n  const char* name;\n  uint16_t upper[128];\n};\n",
  `constexpr SingleByte kSingleBytes[] = {\n${single.map(([name, index]) => `{"${name}", {\n${list(index)}\n}},`).join("\n")}\n};\n`,
];
await mkdir(dirname(resolve(outfile)), { recursive: true });
await writeFile(outfile, parts.join("\n"));
