// node:zlib over members, padding, trailing bytes, missing ends and pieces of every size.
import { Buffer } from "node:buffer";
import { Readable } from "node:stream";
import zlib from "node:zlib";

const PACKERS = { gunzip: "gzip", inflate: "deflate", inflateRaw: "deflateRaw", unzip: "gzip" };
const NOTHING = Buffer.alloc(0);
const pattern = Buffer.from(Array.from({ length: 997 }, (_, index) => (index * index * 31) % 251));
const contents = {
  empty: NOTHING,
  text: Buffer.from("text text text"),
  "a piece": Buffer.alloc(65_536, "ab"),
  "more than a piece": Buffer.alloc(65_636),
  "many pieces": Buffer.alloc(300_000, pattern),
};
const trails = {
  nothing: NOTHING,
  junk: Buffer.from("junk"),
  zeros: Buffer.alloc(5),
  magic: Buffer.from([0x1f, 0x8b]),
  "half a magic": Buffer.from([0x1f]),
  "wrong method": Buffer.from([0x1f, 0x8b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0]),
  "one byte": Buffer.from([8]),
};

const digest = (data) => `${data.length} bytes, crc ${zlib.crc32(data)}`;

function through(name, data, cuts, options) {
  const stream = zlib[`create${name[0].toUpperCase()}${name.slice(1)}`](options);
  const pieces = [];
  const starts = [0, ...cuts];
  const parts = starts.map((start, index) => data.subarray(start, starts[index + 1])).filter((part) => part.length > 0);
  return new Promise((resolve) => {
    stream.on("data", (piece) => pieces.push(piece));
    stream.on("error", (error) => resolve(`throws ${error.code} ${error.errno} ${error.message}`));
    stream.on("end", () => resolve(digest(Buffer.concat(pieces))));
    Readable.from(parts).pipe(stream);
  });
}

export const cases = {};

for (const [name, packer] of Object.entries(PACKERS)) {
  const sync = zlib[`${name}Sync`];
  for (const [label, content] of Object.entries(contents)) {
    const packed = zlib[`${packer}Sync`](content);
    const twice = Buffer.concat([packed, packed]);
    const endings = { ...trails, "another member": packed, "zeros and a member": Buffer.concat([Buffer.alloc(3), packed]), "an empty member": zlib.gzipSync("") };
    for (const [ending, trail] of Object.entries(endings)) {
      const data = Buffer.concat([packed, trail]);
      cases[`${name} ${label} + ${ending}`] = () => digest(sync(data));
      cases[`${name} ${label} + ${ending}, maxOutputLength`] = () => digest(sync(data, { maxOutputLength: 14 }));
      for (const cut of [1, packed.length - 1, packed.length, packed.length + 1]) {
        cases[`${name} ${label} + ${ending}, cut at ${cut === 1 ? 1 : `end ${cut - packed.length}`}`] = () => through(name, data, [cut]);
      }
      if (data.length < 2000) cases[`${name} ${label} + ${ending}, byte by byte`] = () => through(name, data, Array.from({ length: data.length - 1 }, (_, index) => index + 1));
    }
    for (const missing of [1, 2, 4, 7, 8, 9]) {
      if (missing >= packed.length) continue;
      const short = packed.subarray(0, -missing);
      cases[`${name} ${label} lacks ${missing}`] = () => digest(sync(short));
      cases[`${name} ${label} lacks ${missing}, stream`] = () => through(name, short, []);
      cases[`${name} ${label} lacks ${missing}, may be short`] = () => digest(sync(short, { finishFlush: zlib.constants.Z_SYNC_FLUSH }));
      cases[`${name} ${label} lacks ${missing}, stream may be short`] = () => through(name, short, [], { flush: zlib.constants.Z_SYNC_FLUSH, finishFlush: zlib.constants.Z_SYNC_FLUSH });
    }
    for (const at of [0, 1, 3, packed.length - 6, packed.length - 2]) {
      const damaged = Buffer.from(packed);
      damaged[at] ^= 0x10;
      cases[`${name} ${label} damaged at ${at}`] = () => digest(sync(damaged));
    }
    if (label === "text") for (let cut = 1; cut < twice.length; cut++) cases[`${name} twice, cut at ${cut}`] = () => through(name, twice, [cut]);
  }
  cases[`${name} of nothing`] = () => digest(sync(NOTHING));
  cases[`${name} of nothing, stream`] = () => through(name, NOTHING, []);
  cases[`${name} of no such data`] = () => digest(sync(Buffer.from("no gzip")));
}
