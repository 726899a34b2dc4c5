// https://nodejs.org/api/buffer.html
import { Buffer, isUtf8, transcode } from "node:buffer";
import { deepEqual, equal, ok, throws } from "./assert.js";

const list = (buffer) => [...buffer];

export const tests = {
  "slices and writes by encoding": () => {
    const buffer = Buffer.from("h\u00e9llo");
    equal(buffer.utf8Slice(0, 3), "h\u00e9");
    equal(buffer.latin1Slice(1, 3), "\u00c3\u00a9");
    equal(buffer.hexSlice(), "68c3a96c6c6f");
    equal(buffer.asciiWrite("HI"), 2);
    equal(buffer.latin1Slice(0, 2), "HI");
  },
  "buffers from every kind of source": () => {
    deepEqual(list(Buffer.from("héllo")), [104, 195, 169, 108, 108, 111]);
    deepEqual(list(Buffer.from([1, 256, -1, "3"])), [1, 0, 255, 3]);
    const memory = new Uint8Array([1, 2, 3, 4]).buffer;
    const view = Buffer.from(memory, 1, 2);
    deepEqual(list(view), [2, 3]);
    view[0] = 9;
    equal(new Uint8Array(memory)[1], 9);
    const source = new Uint8Array([1]);
    Buffer.from(source)[0] = 5;
    equal(source[0], 1);
    deepEqual(list(Buffer.from({ type: "Buffer", data: [1, 2] })), [1, 2]);
    deepEqual(list(Buffer.from(new String("a"))), [97]);
    for (const wrong of [5, null, undefined, true, Symbol("x")]) equal(throws(() => Buffer.from(wrong)).code, "ERR_INVALID_ARG_TYPE");
    equal(throws(() => Buffer.from(memory, 5)).code, "ERR_BUFFER_OUT_OF_BOUNDS");
    equal(throws(() => Buffer.alloc(-1)).code, "ERR_OUT_OF_RANGE");
    deepEqual(list(Buffer.alloc(5, "ab")), [97, 98, 97, 98, 97]);
    ok(Buffer.from("a") instanceof Uint8Array);
    ok(Buffer.isBuffer(Buffer.alloc(1)) && !Buffer.isBuffer(new Uint8Array(1)));
    ok(Buffer.alloc(3).subarray(1) instanceof Buffer && Buffer.alloc(3).slice(1) instanceof Buffer);
    ok(Buffer.alloc(2).map((x) => x) instanceof Buffer);
    deepEqual(list(Buffer("ab")), [97, 98]);
    deepEqual(list(new Buffer(2)), [0, 0]);
  },
  "encodings in both directions": () => {
    const text = "Zürich €😀";
    for (const encoding of ["utf8", "utf-8", "UTF8", "utf16le", "ucs2"]) equal(Buffer.from(text, encoding).toString(encoding), text);
    equal(Buffer.from("ÿa", "latin1").toString("hex"), "ff61");
    equal(Buffer.from("ff61zz", "hex").toString("latin1"), "ÿa");
    equal(Buffer.from("abc").toString("base64"), "YWJj");
    equal(Buffer.from([251, 255]).toString("base64url"), "-_8");
    deepEqual(list(Buffer.from("-_8", "base64")), [251, 255]);
    deepEqual(list(Buffer.from(" YW Jj\n=junk", "base64")), [97, 98, 99]);
    equal(Buffer.from([0xff, 0x41]).toString(), "\ufffdA");
    equal(Buffer.from([0xef, 0xbb, 0xbf, 0x41]).toString().length, 2);
    equal(Buffer.from([0xc1]).toString("ascii"), "A");
    equal(Buffer.from("hello").toString("utf8", 1, 3), "el");
    equal(Buffer.from("hello").toString("utf8", -5, 99), "hello");
    equal(throws(() => Buffer.from("a", "nope")).code, "ERR_UNKNOWN_ENCODING");
    deepEqual([Buffer.isEncoding("Hex"), Buffer.isEncoding("nope"), Buffer.isEncoding(5)], [true, false, false]);
    equal(Buffer.byteLength("€"), 3);
    equal(Buffer.byteLength("YWJj", "base64"), 3);
    equal(transcode(Buffer.from("€"), "utf8", "utf16le").toString("hex"), "ac20");
    deepEqual([isUtf8(Buffer.from("é")), isUtf8(Buffer.from([255]))], [true, false]);
    const big = Buffer.alloc(100_000, "x");
    equal(Buffer.from(big.toString("base64"), "base64").equals(big), true);
  },
  "numbers": () => {
    const buffer = Buffer.alloc(8);
    for (const [name, value] of [
      ["UInt8", 255], ["Int8", -1], ["UInt16LE", 0x1234], ["UInt16BE", 0x1234], ["Int16LE", -2], ["UInt32LE", 0xdeadbeef], ["UInt32BE", 1],
      ["Int32BE", -5], ["FloatLE", 0.5], ["DoubleBE", Math.PI], ["BigUInt64LE", 2n ** 64n - 1n], ["BigInt64BE", -1n],
    ]) {
      buffer[`write${name}`](value, 0);
      equal(buffer[`read${name}`](0), value, name);
    }
    buffer.writeUIntBE(0x123456789abc, 1, 6);
    equal(buffer.readUIntBE(1, 6), 0x123456789abc);
    buffer.writeIntLE(-3, 0, 3);
    equal(buffer.readIntLE(0, 3), -3);
    equal(buffer.readUint8, buffer.readUInt8);
    equal(throws(() => buffer.readUInt32LE(5)).code, "ERR_OUT_OF_RANGE");
    equal(throws(() => buffer.readUInt8("0")).code, "ERR_INVALID_ARG_TYPE");
    equal(throws(() => buffer.writeUInt8(256)).code, "ERR_OUT_OF_RANGE");
    equal(throws(() => Buffer.alloc(1).readUInt16LE()).code, "ERR_BUFFER_OUT_OF_BOUNDS");
  },
  "write, fill, copy, swap": () => {
    const buffer = Buffer.alloc(6);
    equal(buffer.write("ab", 1), 2);
    equal(buffer.write("€€", 3), 3);
    equal(buffer.toString("hex"), "006162e282ac");
    equal(buffer.write("ff", 0, "hex"), 1);
    equal(buffer.fill("xy", 1, 4).toString("latin1").slice(1, 4), "xyx");
    equal(buffer.fill(0).every((byte) => byte === 0), true);
    const target = Buffer.alloc(3);
    equal(Buffer.from("hello").copy(target, 1, 1), 2);
    equal(target.toString("latin1"), "\0el");
    equal(Buffer.from([1, 2, 3, 4]).swap16().toString("hex"), "02010403");
    equal(throws(() => Buffer.alloc(3).swap16()).code, "ERR_INVALID_BUFFER_SIZE");
  },
  "compare and search": () => {
    equal(Buffer.compare(Buffer.from("a"), Buffer.from("b")), -1);
    equal(Buffer.from("ab").equals(new Uint8Array([97, 98])), true);
    equal(Buffer.concat([Buffer.from("a"), new Uint8Array([98])]).toString(), "ab");
    equal(Buffer.concat([Buffer.from("abc")], 2).toString(), "ab");
    const buffer = Buffer.from("this is a buffer, is it");
    deepEqual([buffer.indexOf("is"), buffer.indexOf("is", 3), buffer.lastIndexOf("is"), buffer.indexOf("no"), buffer.indexOf(97)], [2, 5, 18, -1, 8]);
    deepEqual([buffer.includes("buf"), buffer.indexOf(""), buffer.indexOf("is", -2), buffer.lastIndexOf("is", -6)], [true, 0, -1, 5]);
    equal(buffer.indexOf(Buffer.from("it")), 21);
    deepEqual(JSON.parse(JSON.stringify(Buffer.from("a"))), { type: "Buffer", data: [97] });
    deepEqual(Object.keys(Buffer.from("ab")), ["0", "1"]);
  },
};
