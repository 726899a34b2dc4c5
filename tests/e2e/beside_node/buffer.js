import { Buffer, isAscii, isUtf8, transcode } from "node:buffer";
import { StringDecoder } from "node:string_decoder";
import { table } from "./run.js";

const ENCODINGS = ["utf8", "utf-8", "UCS2", "utf16le", "latin1", "binary", "ascii", "hex", "base64", "base64url", "nonsense", ""];
const TEXTS = ["", "hello", "h\u00e9llo", "\u20ac\u{1F30A}", "\ud800", "zz", "abc", "YWJj", "YWJj ZGVm", "YWI=", "YWI", "-_-_", "616", "61zz62", "\0\x80\xff"];
const BYTES = [[], [0x61], [0xff, 0xfe], [0xe2, 0x82, 0xac], [0xe2, 0x82], [0xf0, 0x9f, 0x8c], [0, 1, 2, 3, 250, 251, 252]];

const each = {};
for (const encoding of ENCODINGS) {
  for (const [index, text] of TEXTS.entries()) {
    each[`from ${encoding} ${index}`] = () => Buffer.from(text, encoding);
    each[`byteLength ${encoding} ${index}`] = () => Buffer.byteLength(text, encoding);
    each[`fill ${encoding} ${index}`] = () => Buffer.alloc(5, text, encoding);
    each[`write ${encoding} ${index}`] = () => {
      const target = Buffer.alloc(4, 1);
      return [target.write(text, 1, encoding), [...target]];
    };
    // Node itself crashes when it searches for some other texts.
    if (/^[\w ]*$/.test(text)) each[`indexOf ${encoding} ${index}`] = () => Buffer.from("xhello h\u00e9llo abc", "utf8").indexOf(text, 1, encoding);
  }
  for (const [index, bytes] of BYTES.entries()) each[`toString ${encoding} ${index}`] = () => Buffer.from(bytes).toString(encoding);
  each[`isEncoding ${encoding}`] = () => Buffer.isEncoding(encoding);
  each[`StringDecoder ${encoding}`] = () => {
    const decoder = new StringDecoder(encoding);
    const parts = [...Buffer.from("a\u20ac\u{1F30A}b", "utf8")].map((byte) => decoder.write(Buffer.from([byte])));
    return [decoder.encoding, ...parts, decoder.end(Buffer.from([0xe2])), decoder.end()];
  };
}

const NUMBERS = ["UInt8", "Int8", "UInt16LE", "UInt16BE", "Int16LE", "Int16BE", "UInt32LE", "UInt32BE", "Int32LE", "Int32BE", "FloatLE", "FloatBE", "DoubleLE", "DoubleBE", "BigInt64LE", "BigInt64BE", "BigUInt64LE", "BigUInt64BE"];
for (const kind of NUMBERS) {
  const isBig = kind.startsWith("Big");
  const bytes = Buffer.from([1, 200, 3, 255, 128, 6, 7, 254, 9, 10]);
  for (const offset of [undefined, 0, 1, 2, 9, 10, -1, 1.5, NaN, "1", null]) {
    each[`read${kind} ${String(offset)}`] = () => bytes[`read${kind}`](offset);
  }
  // Where a bigint is needed, other numbers are refused with another message than Node's.
  for (const value of [0, 1, -1, 127, 128, 255, 256, 65536, 2 ** 31, 2 ** 32, ...(isBig ? [] : [1.5, NaN, "7", undefined])]) {
    each[`write${kind} ${String(value)}`] = () => {
      const target = Buffer.alloc(9);
      return [target[`write${kind}`](isBig ? BigInt(value) : value, 1), [...target]];
    };
  }
}
for (const bytes of [1, 3, 5, 6, 7, 0, undefined]) {
  each[`readUIntBE ${bytes}`] = () => Buffer.from([1, 2, 3, 4, 5, 6, 255]).readUIntBE(1, bytes);
  each[`readIntLE ${bytes}`] = () => Buffer.from([1, 2, 3, 4, 5, 6, 255]).readIntLE(1, bytes);
  each[`writeIntBE ${bytes}`] = () => [...Buffer.alloc(7)].map(() => Buffer.alloc(7)).map((b) => [b.writeIntBE(-5, 1, bytes), ...b])[0];
}

const hello = () => Buffer.from("hello world");
export const cases = {
  ...each,
  ...table("alloc", (...args) => Buffer.alloc(...args), [3], [0], [3, 1], [3, 257], [3, "ab"], [3, Buffer.from("xy")], ["3"], [3, ""], [3, "zz", "hex"]),
  ...table("from", (...args) => Buffer.from(...args), [[1, 2, 300, -1, "4", 1.9]], [new Uint16Array([1, 300])], [new Uint8Array([1, 2, 3]).buffer, 1], [new Uint8Array([1, 2, 3]).buffer, 1, 1], [new ArrayBuffer(2), 3], [{ length: 2, 0: 5 }], [{ type: "Buffer", data: [1, 2] }], [new String("boxed")], [{ valueOf: () => "value" }], [5], [null], [undefined], [true], [{}], [() => {}], [{ [Symbol.toPrimitive]: () => "prim" }], [Symbol("x")]),
  ...table("concat", (...args) => Buffer.concat(...args), [[Buffer.from("a"), Buffer.from("bc")]], [[Buffer.from("abc")], 2], [[Buffer.from("a")], 3], [[]], [[new Uint8Array(2)]], ["x"], [["x"]], [[Buffer.from("a")], "2"]),
  ...table("compare", (...args) => Buffer.compare(...args), [Buffer.from("a"), Buffer.from("b")], [Buffer.from("b"), Buffer.from("a")], [Buffer.from("a"), Buffer.from("a")], [Buffer.from("a"), Buffer.from("ab")], ["a", Buffer.from("b")]),
  ...table("slice", (...args) => hello().slice(...args), [], [2], [2, 5], [-3], [-3, -1], [20], [5, 2], ["2"], [NaN], [undefined, 3]),
  ...table("subarray", (...args) => hello().subarray(...args), [2, 5], [-3], [null]),
  ...table("includes", (...args) => hello().includes(...args), ["lo"], ["xx"], [111], [111, 5], [Buffer.from("wor")], ["", 3], ["o", -3], [{}], [null], ["6c6c", 0, "hex"]),
  ...table("lastIndexOf", (...args) => hello().lastIndexOf(...args), ["o"], ["o", 5], ["o", -8], [111], [Buffer.from("l")], ["zz"], ["", 4], ["o", NaN], ["o", undefined], ["o", null]),
  ...table("indexOf offset", (...args) => hello().indexOf(...args), ["o", 5], ["o", -4], ["o", NaN], ["o", "5"], ["", 20], [256 + 111], [1.5], ["l", 2, "utf16le"]),
  ...table("toString range", (...args) => hello().toString(...args), ["utf8", 2], ["utf8", 2, 4], ["utf8", -5, 4], ["utf8", 4, 2], ["utf8", 2, 100], ["latin1", "1", "3"], [undefined, 1], [null]),
  ...table("copy", (...args) => {
    const target = Buffer.alloc(6, 46);
    return [hello().copy(target, ...args), target.toString()];
  }, [], [2], [2, 6], [2, 6, 8], [6], [-1], [0, -1], [0, 20], [0, 3, 2], ["1"]),
  ...table("swap", (size, how) => Buffer.from(Array.from({ length: size }, (_, i) => i))[how](), [4, "swap16"], [8, "swap32"], [8, "swap64"], [3, "swap16"], [6, "swap32"], [7, "swap64"]),
  ...table("equals", (a, b) => a.equals(b), [Buffer.from("a"), Buffer.from("a")], [Buffer.from("a"), new Uint8Array([97])], [Buffer.from("a"), "a"]),
  ...table("compare range", (...args) => Buffer.from("abcdef").compare(...args), [Buffer.from("cd"), 0, 2, 2, 4], [Buffer.from("cd"), 0, 2], [Buffer.from("cd"), 5], [Buffer.from("cd"), -1], ["x"]),
  ...table("fill", (...args) => Buffer.alloc(6).fill(...args), [1], ["abc"], ["abc", 1], ["abc", 1, 3], ["6162", "hex"], ["", 1], [1.7], [-1], [Buffer.from("xy"), 1], ["a", -1], ["a", 0, 7], [true]),
  ...table("isUtf8", (bytes) => [isUtf8(Buffer.from(bytes)), isAscii(Buffer.from(bytes))], ...BYTES.map((bytes) => [bytes])),
  ...table("transcode", (text, from, to) => transcode(Buffer.from(text, from), from, to), ["\u20ac", "utf8", "latin1"], ["h\u00e9", "utf8", "utf16le"], ["h\u00e9", "latin1", "utf8"], ["x", "utf8", "ascii"]),
  "toJSON": () => JSON.stringify(Buffer.from("ab")),
  "entries": () => [[...Buffer.from("ab").entries()], [...Buffer.from("ab").keys()], [...Buffer.from("ab").values()]],
  "of": () => Buffer.of(1, 2, 300),
  "species": () => [hello().map((x) => x + 1).constructor.name, hello().filter((x) => x > 110).toString()],
  "latin1Slice": () => [hello().latin1Slice(0, 3), hello().utf8Slice(1, 3), hello().hexSlice(0, 2), hello().base64Slice(0, 3), hello().asciiSlice(0, 2), hello().ucs2Slice(0, 4)],
  "utf8Write": () => {
    const target = Buffer.alloc(4);
    return [target.utf8Write("ab", 1), target.hexWrite("ff", 3), [...target]];
  },
  "write arguments": () => [Buffer.alloc(3).write("abcdef"), Buffer.alloc(3).write("abc", 1), Buffer.alloc(3).write("abc", 0, 2), Buffer.alloc(3).write("abc", "latin1")],
  "write out of range": () => Buffer.alloc(3).write("abc", 4),
  "write half a character": () => [...Buffer.alloc(3).fill(0)].length + Buffer.alloc(3).write("a\u20acb"),
  "copyBytesFrom": () => [...Buffer.copyBytesFrom(new Uint16Array([1, 2, 3]), 1, 1)],
};
