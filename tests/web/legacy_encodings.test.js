// https://encoding.spec.whatwg.org/#legacy-single-byte-encodings and the multi-byte ones
import { equal, ok, throws } from "./assert.js";

const hex = (text) => Uint8Array.from(text.split(" ").filter(Boolean), (pair) => parseInt(pair, 16));
const decode = (label, text, options) => new TextDecoder(label, options).decode(hex(text));

export const tests = {
  "labels of all encodings": () => {
    for (const [label, name] of Object.entries({
      " GB2312\n": "gbk", "x-x-big5": "big5", "ms_kanji": "shift_jis", csISO2022JP: "iso-2022-jp", "windows-949": "euc-kr",
      "x-euc-jp": "euc-jp", gb18030: "gb18030", latin2: "iso-8859-2", cyrillic: "iso-8859-5", logical: "iso-8859-8-i",
      koi8: "koi8-r", "koi8-ru": "koi8-u", mac: "macintosh", "tis-620": "windows-874", cp1251: "windows-1251",
      ascii: "windows-1252", "x-mac-ukrainian": "x-mac-cyrillic", "x-user-defined": "x-user-defined", 866: "ibm866",
      "latin5": "windows-1254", l9: "iso-8859-15", "unicode11utf8": "utf-8", "ucs-2": "utf-16le", unicodeFFFE: "utf-16be",
    })) {
      equal(new TextDecoder(label).encoding, name, label);
    }
    for (const wrong of ["", "replacement", "iso-2022-kr", "hz-gb-2312", "utf-7", "utf-32", "latin-1", "\u00a0utf-8", "\u212aoi8-r"]) {
      throws(() => new TextDecoder(wrong), RangeError, wrong);
    }
  },
  "single-byte encodings": () => {
    equal(decode("koi8-r", "D0 D2 C9 D7 C5 D4"), "привет");
    equal(decode("windows-1251", "EF F0 E8 E2 E5 F2"), "привет");
    equal(decode("ibm866", "AF E0 A8 A2 A5 E2"), "привет");
    equal(decode("iso-8859-7", "E1 E2 E3"), "αβγ");
    equal(decode("windows-1252", "80 41 FF 9F 81"), "€AÿŸ\x81");
    equal(decode("macintosh", "A5 CA"), "•\xa0");
    equal(decode("x-user-defined", "41 80 FF"), "A\uf780\uf7ff");
    equal(decode("windows-874", "DB FC"), "\ufffd\ufffd");
    throws(() => decode("windows-874", "DB", { fatal: true }), TypeError);
  },
  "multi-byte encodings": () => {
    equal(decode("gbk", "D6 D0 CE C4 80"), "中文€");
    equal(decode("gb18030", "94 39 FC 36 41 81 30 81 30 84 31 A4 37"), "😀A\x80\ufffd");
    equal(decode("gb18030", "A6 D9 FE 59"), "\ufe10\u9fb4");
    equal(decode("big5", "A4 A4 A4 E5 88 62 88 A5"), "中文Ê̄ê̌");
    equal(decode("big5", "87 40"), "\u43f0");
    equal(decode("euc-jp", "C6 FC CB DC 8E B1 8F B0 A1"), "日本ｱ丂");
    equal(decode("shift_jis", "93 FA 96 7B B1 5C 7E F0 40"), "日本ｱ\\~\ue000");
    equal(decode("iso-2022-jp", "1B 24 42 46 7C 4B 5C 1B 28 4A 5C 7E 1B 28 49 31 1B 28 42 41"), "日本¥‾ｱA");
    equal(decode("euc-kr", "C7 D1 B1 B9"), "한국");
  },
  "malformed input": () => {
    equal(decode("gb18030", "81"), "\ufffd");
    equal(decode("gb18030", "81 30 41"), "\ufffd0A");
    equal(decode("gb18030", "81 30 81 41"), "\ufffd0\u4e04".replace("\u4e04", decode("gb18030", "81 41")));
    equal(decode("gb18030", "FF 41"), "\ufffdA");
    equal(decode("big5", "A4 41 A4"), "\ufffdA\ufffd".replace("\ufffdA", decode("big5", "A4 41")));
    equal(decode("shift_jis", "81 20"), "\ufffd ");
    equal(decode("euc-jp", "8F A1 20 8E"), "\ufffd \ufffd");
    equal(decode("iso-2022-jp", "1B 24"), "\ufffd$");
    equal(decode("iso-2022-jp", "1B 28 42 1B 28 42 41"), "\ufffdA");
    equal(decode("euc-kr", "C9 20"), "\ufffd ");
    for (const label of ["gb18030", "big5", "shift_jis", "euc-jp", "euc-kr"]) {
      throws(() => decode(label, "FF", { fatal: true }), TypeError, label);
      throws(() => decode(label, "E4", { fatal: true }), TypeError, label);
    }
  },
  "pieces of any size give the same result": () => {
    const samples = {
      gb18030: "94 39 FC 36 41 D6 D0 81 30 41", big5: "A4 A4 88 62 A4", "euc-jp": "8F B0 A1 C6 FC 8E B1 8F",
      shift_jis: "93 FA B1 96", "iso-2022-jp": "1B 24 42 46 7C 1B 28 49 31 1B 28 42 41 1B", "euc-kr": "C7 D1 C7",
    };
    for (const [label, text] of Object.entries(samples)) {
      const decoder = new TextDecoder(label);
      let pieces = "";
      for (const byte of hex(text)) pieces += decoder.decode(new Uint8Array([byte]), { stream: true });
      equal(pieces + decoder.decode(), decode(label, text), label);
      equal(decoder.decode(hex("41")), "A");
    }
  },
  "a long text is decoded in steps": () => {
    const bytes = new Uint8Array(3_000_001).fill(0xd6);
    bytes.fill(0xd0, 1_048_575, 1_048_576);
    const text = new TextDecoder("gbk").decode(bytes);
    ok(text.length >= 1_500_000);
    equal(text.at(-1), "\ufffd");
  },
  "a byte order mark has no meaning here": () => {
    equal(decode("windows-1252", "EF BB BF 41"), "ï»¿A");
    equal(new TextDecoder("gbk", { ignoreBOM: true }).ignoreBOM, true);
  },
};
