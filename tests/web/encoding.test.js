// https://encoding.spec.whatwg.org/
import { deepEqual, equal, ok, throws } from "./assert.js";

const u8 = (...bytes) => new Uint8Array(bytes);
const encode = (text) => [...new TextEncoder().encode(text)];
const decode = (bytes, label = "utf-8", options = {}) => new TextDecoder(label, options).decode(bytes);

export const tests = {
  "text becomes UTF-8": () => {
    deepEqual(encode(""), []);
    deepEqual(encode(), []);
    deepEqual(encode("aé€😀"), [0x61, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80]);
    deepEqual(encode("\ud800x\udc00"), [0xef, 0xbf, 0xbd, 0x78, 0xef, 0xbf, 0xbd]);
    equal(new TextEncoder().encoding, "utf-8");
    equal(encode("x".repeat(65)).length, 65);
    equal(encode("é".repeat(40)).length, 80);
    equal(new TextEncoder().encode("x".repeat(20_000_000)).length, 20_000_000);
    deepEqual(encode(5), [0x35]);
  },
  "encodeInto stops before a character that does not fit": () => {
    const encoder = new TextEncoder();
    const target = new Uint8Array(4);
    deepEqual(encoder.encodeInto("aé€", target), { read: 2, written: 3 });
    deepEqual([...target], [0x61, 0xc3, 0xa9, 0]);
    deepEqual(encoder.encodeInto("😀", target), { read: 2, written: 4 });
    deepEqual(encoder.encodeInto("😀", new Uint8Array(3)), { read: 0, written: 0 });
    deepEqual(encoder.encodeInto("x", new Uint8Array(0)), { read: 0, written: 0 });
    const whole = new Uint8Array(10);
    encoder.encodeInto("ab", whole.subarray(5));
    deepEqual([...whole], [0, 0, 0, 0, 0, 0x61, 0x62, 0, 0, 0]);
    throws(() => encoder.encodeInto("x", []), TypeError);
    throws(() => encoder.encodeInto("x"), TypeError);
  },
  "malformed UTF-8 is replaced per maximal subpart": () => {
    equal(decode(u8(0xff)), "\uFFFD");
    equal(decode(u8(0xc0, 0x80)), "\uFFFD\uFFFD");
    equal(decode(u8(0xe2, 0x82)), "\uFFFD");
    equal(decode(u8(0xe2, 0x82, 0x41)), "\uFFFDA");
    equal(decode(u8(0xed, 0xa0, 0x80)), "\uFFFD\uFFFD\uFFFD");
    equal(decode(u8(0xf0, 0x9f, 0x98)), "\uFFFD");
    equal(decode(u8(0xf4, 0x90, 0x80, 0x80)), "\uFFFD\uFFFD\uFFFD\uFFFD");
    equal(decode(u8(0xf0, 0x80, 0x80, 0x80)), "\uFFFD\uFFFD\uFFFD\uFFFD");
  },
  "fatal decoders refuse malformed UTF-8": () => {
    for (const bytes of [
      [0xff], [0xc0, 0x80], [0xc1, 0xbf], [0xe0, 0x80, 0x80], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xf0, 0x80, 0x80, 0x80],
      [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80], [0x80], [0x61, 0x61, 0x61, 0x61, 0x61, 0x61, 0x61, 0x61, 0xc3],
    ]) {
      throws(() => decode(u8(...bytes), "utf-8", { fatal: true }), TypeError, String(bytes));
    }
    equal(decode(u8(0xf4, 0x8f, 0xbf, 0xbf), "utf-8", { fatal: true }), "\u{10FFFF}");
    equal(decode(u8(0xed, 0x9f, 0xbf, 0xee, 0x80, 0x80), "utf-8", { fatal: true }), "\uD7FF\uE000");
  },
  "a byte order mark is dropped, once, unless asked for": () => {
    const marked = u8(0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf, 0x61);
    equal(decode(marked), "\uFEFFa");
    equal(decode(marked, "utf-8", { ignoreBOM: true }), "\uFEFF\uFEFFa");
    const decoder = new TextDecoder();
    equal(decoder.decode(u8(0xef), { stream: true }), "");
    equal(decoder.decode(u8(0xbb, 0xbf, 0x61), { stream: true }), "a");
    equal(decoder.decode(u8(0xef, 0xbb, 0xbf)), "\uFEFF");
    equal(decoder.decode(u8(0xef, 0xbb, 0xbf)), "");
  },
  "UTF-8 in pieces of every size": () => {
    const text = "aé€😀 z𐍈ß";
    const bytes = new TextEncoder().encode(text);
    for (let size = 1; size <= bytes.length; size++) {
      const decoder = new TextDecoder("utf-8", { fatal: true });
      let result = "";
      for (let i = 0; i < bytes.length; i += size) result += decoder.decode(bytes.subarray(i, i + size), { stream: true });
      equal(result + decoder.decode(), text, `pieces of ${size}`);
    }
  },
  "malformed UTF-8 decodes the same in pieces": () => {
    const inputs = [[0xe2, 0x41, 0x82], [0xf0, 0x9f, 0x41], [0xe0, 0x80, 0x80], [0xf4, 0x90], [0xc3], [0xed, 0xa0, 0x80]];
    for (const bytes of inputs) {
      const decoder = new TextDecoder();
      let result = "";
      for (const byte of bytes) result += decoder.decode(u8(byte), { stream: true });
      equal(result + decoder.decode(), decode(u8(...bytes)), String(bytes));
    }
    const fatal = new TextDecoder("utf-8", { fatal: true });
    fatal.decode(u8(0xe2), { stream: true });
    throws(() => fatal.decode(), TypeError);
    equal(fatal.decode(u8(0x61)), "a");
  },
  "UTF-16 in both byte orders": () => {
    equal(decode(u8(0x61, 0, 0x3d, 0xd8, 0, 0xde), "utf-16le"), "a😀");
    equal(decode(u8(0, 0x61, 0xd8, 0x3d, 0xde, 0), "utf-16be"), "a😀");
    equal(decode(u8(0xff, 0xfe, 0x61, 0), "utf-16"), "a");
    equal(decode(u8(0x00, 0xd8, 0x61, 0), "utf-16le"), "\uFFFDa");
    equal(decode(u8(0x61, 0, 0x62), "utf-16le"), "a\uFFFD");
    throws(() => decode(u8(0x00, 0xd8), "utf-16le", { fatal: true }), TypeError);
    const decoder = new TextDecoder("utf-16le");
    let text = "";
    for (const byte of [0x61, 0, 0x3d, 0xd8, 0, 0xde, 0x62]) text += decoder.decode(u8(byte), { stream: true });
    equal(text + decoder.decode(), "a😀\uFFFD");
  },
  "windows-1252 and its many names": () => {
    equal(decode(u8(0x61, 0xe4, 0x80, 0x9f, 0x81), "latin1"), "aä€Ÿ\x81");
    for (const label of ["ascii", "iso-8859-1", "us-ascii", "l1"]) equal(new TextDecoder(label).encoding, "windows-1252");
  },
  "labels": () => {
    for (const label of ["utf8", "UTF-8", " utf-8\n", "unicode-1-1-utf-8", "x-unicode20utf8"]) {
      equal(new TextDecoder(label).encoding, "utf-8");
    }
    equal(new TextDecoder("ucs-2").encoding, "utf-16le");
    for (const label of ["", "nonsense", "utf-8\0", "\u00a0utf-8"]) throws(() => new TextDecoder(label), RangeError);
    const decoder = new TextDecoder("utf-8", { fatal: 1, ignoreBOM: true });
    equal(decoder.fatal, true);
    equal(decoder.ignoreBOM, true);
  },
  "every kind of buffer can be decoded": () => {
    const bytes = new TextEncoder().encode("0123456789");
    equal(decode(bytes.buffer), "0123456789");
    equal(decode(bytes.subarray(2, 4)), "23");
    equal(decode(new DataView(bytes.buffer, 1, 2)), "12");
    equal(decode(new Uint16Array(bytes.buffer, 2, 1)), "23");
    equal(decode(new Uint8Array(0)), "");
    equal(new TextDecoder().decode(), "");
    throws(() => new TextDecoder().decode("text"), TypeError);
    throws(() => new TextDecoder().decode(null), TypeError);
    throws(() => new TextDecoder("utf-8", 5), TypeError);
    const large = new Uint8Array(30_000_000).fill(0x61);
    equal(decode(large).length, 30_000_000);
  },
  "atob and btoa": () => {
    equal(btoa(""), "");
    equal(btoa("a"), "YQ==");
    equal(btoa("ab"), "YWI=");
    equal(btoa("abc"), "YWJj");
    equal(btoa("\0\xff"), "AP8=");
    equal(atob("YQ"), "a");
    equal(atob(" Y\tQ\n=\r=\f"), "a");
    equal(atob("AP8="), "\0\xff");
    equal(atob(""), "");
    const all = String.fromCharCode(...Array.from({ length: 256 }, (_, i) => i));
    for (let i = 0; i < 256; i++) equal(atob(btoa(all.slice(i))), all.slice(i));
    for (const input of ["a", "YQ=", "YQ===", "=", "Y=Q=", "YQ==YQ==", "Y!==", "é", "\u0100", "-_", "YQ==="]) {
      equal(throws(() => atob(input), DOMException, input).name, "InvalidCharacterError");
    }
    equal(throws(() => btoa("\u0100"), DOMException).code, 5);
    throws(() => atob(), TypeError);
    ok(btoa("x".repeat(10_000_000)).length > 13_000_000);
  },
  "a transferred buffer is empty": () => {
    const buffer = u8(1, 2, 3, 4).buffer;
    const view = new DataView(buffer, 1);
    structuredClone(buffer, { transfer: [buffer] });
    equal(new TextDecoder().decode(buffer), "");
    equal(new TextDecoder().decode(view), "");
  },
  "shared memory is read and written where the standard allows it": () => {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const bytes = new Uint8Array(memory.buffer, 4, 8);
    equal(Object.prototype.toString.call(memory.buffer), "[object SharedArrayBuffer]");
    deepEqual(new TextEncoder().encodeInto("h\u00e9", bytes), { read: 2, written: 3 });
    equal(new TextDecoder().decode(bytes.subarray(0, 3)), "h\u00e9");
    equal(new TextDecoder().decode(memory.buffer).length, 65_535);
    equal(typeof SharedArrayBuffer, "undefined");
  },
};
