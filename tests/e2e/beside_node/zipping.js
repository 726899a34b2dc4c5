// node:zlib over all formats: options, flushes, dictionaries, errors, events of the streams.
import { Buffer } from "node:buffer";
import { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import zlib, { constants } from "node:zlib";

const PAIRS = [
  ["deflate", "inflate"], ["deflateRaw", "inflateRaw"], ["gzip", "gunzip"], ["gzip", "unzip"], ["deflate", "unzip"],
  ["brotliCompress", "brotliDecompress"], ["zstdCompress", "zstdDecompress"],
];
const NAMES = [...new Set(PAIRS.flat())];
const pattern = Buffer.from(Array.from({ length: 997 }, (_, index) => (index * index * 31) % 251));
const inputs = {
  empty: Buffer.alloc(0),
  letter: Buffer.from("a"),
  text: Buffer.from("text text text, and some more text"),
  zeros: Buffer.alloc(70_000),
  mixed: Buffer.alloc(150_000, pattern),
};
const capital = (name) => name[0].toUpperCase() + name.slice(1);
const create = (name, options) => zlib[`create${capital(name)}`](options);
const digest = (data) => `${data.length} bytes, crc ${zlib.crc32(data)}`;
const failure = (error) => `throws ${error.name} ${error.code} ${error.errno} ${error.message}`;
const attempt = (run) => {
  try {
    return run();
  } catch (error) {
    return failure(error);
  }
};

async function through(stream, parts) {
  const pieces = [];
  await pipeline(Readable.from(parts), stream, new Writable({ write(chunk, encoding, done) {
    pieces.push(chunk);
    done();
  } }));
  return Buffer.concat(pieces);
}

export const cases = {};
const add = (name, run) => {
  cases[name] = async () => {
    try {
      return await run();
    } catch (error) {
      return failure(error);
    }
  };
};

// --- what goes in comes out, in pieces of every size
for (const [packer, unpacker] of PAIRS) {
  for (const [label, input] of Object.entries(inputs)) {
    const packed = zlib[`${packer}Sync`](input);
    add(`${packer} ${label}`, () => digest(packed));
    add(`${packer} ${label}, callback`, async () => digest(await promisify(zlib[packer])(input)));
    add(`${packer}, ${unpacker} ${label}`, () => digest(zlib[`${unpacker}Sync`](packed)));
    add(`${packer}, ${unpacker} ${label}, callback`, async () => digest(await promisify(zlib[unpacker])(packed)));
    for (const chunkSize of [64, 1000, 65_536, 200_000]) {
      add(`${packer} ${label}, chunks of ${chunkSize}`, () => digest(zlib[`${packer}Sync`](input, { chunkSize })));
      add(`${unpacker} ${label}, chunks of ${chunkSize}`, () => digest(zlib[`${unpacker}Sync`](packed, { chunkSize })));
      add(`${unpacker} of ${packer} ${label}, stream, chunks of ${chunkSize}`, async () => digest(await through(create(unpacker, { chunkSize }), [packed])));
    }
    const third = Math.floor(packed.length / 3);
    add(`${unpacker} of ${packer} ${label}, stream`, async () => digest(await through(create(unpacker), [packed.subarray(0, third), packed.subarray(third)].filter((part) => part.length > 0))));
    add(`${packer} ${label}, stream`, async () => {
      const stream = create(packer);
      const made = await through(stream, input.length > 0 ? [input] : []);
      return `${stream.bytesWritten} ${digest(zlib[`${unpacker}Sync`](made))} ${digest(made)}`;
    });
    for (const missing of [1, 2, 5]) {
      const short = packed.subarray(0, Math.max(0, packed.length - missing));
      add(`${unpacker} of ${packer} ${label} lacks ${missing}`, () => digest(zlib[`${unpacker}Sync`](short)));
      add(`${unpacker} of ${packer} ${label} lacks ${missing}, stream`, async () => digest(await through(create(unpacker), [short].filter((part) => part.length > 0))));
    }
    for (const trail of ["junk", "\0\0"]) {
      const longer = Buffer.concat([packed, Buffer.from(trail)]);
      add(`${unpacker} of ${packer} ${label} + ${JSON.stringify(trail)}`, () => digest(zlib[`${unpacker}Sync`](longer)));
      add(`${unpacker} of ${packer} ${label} + ${JSON.stringify(trail)}, refused`, () => digest(zlib[`${unpacker}Sync`](longer, { rejectGarbageAfterEnd: true })));
    }
    for (const at of [0, 1, 4, packed.length - 3]) {
      if (at < 0 || at >= packed.length || unpacker === "unzip") continue;
      const damaged = Buffer.from(packed);
      damaged[at] ^= 0x21;
      add(`${unpacker} of ${packer} ${label} damaged at ${at}`, () => digest(zlib[`${unpacker}Sync`](damaged)));
    }
    for (const maxOutputLength of [1, 34, 70_000]) {
      add(`${unpacker} of ${packer} ${label}, at most ${maxOutputLength}`, () => digest(zlib[`${unpacker}Sync`](packed, { maxOutputLength })));
      add(`${unpacker} of ${packer} ${label}, at most ${maxOutputLength}, callback`, async () => digest(await promisify(zlib[unpacker])(packed, { maxOutputLength })));
    }
  }
}

// --- options
const VALUES = [undefined, null, 0, -1, -2, 1, 3, 4, 5, 6, 8, 9, 10, 15, 16, 1.5, NaN, Infinity, "9", true, {}, 1e10];
for (const name of NAMES) {
  for (const option of ["level", "windowBits", "memLevel", "strategy", "flush", "finishFlush", "chunkSize", "maxOutputLength", "dictionary", "params", "rejectGarbageAfterEnd", "pledgedSrcSize"]) {
    for (const value of VALUES) {
      if (option === "chunkSize" && value === 1e10) continue; // more memory than there is
      if (option === "dictionary" && name.startsWith("zstd")) continue; // Node ignores a wrong one, Atoll refuses it
      if (option === "params" && (value === null || typeof value === "number")) continue;
      add(`${name} ${option} = ${String(value)}`, () => attempt(() => create(name, { [option]: value }).constructor.name));
    }
  }
  for (const value of [undefined, null, 5, true, {}, [], Symbol.iterator, new ArrayBuffer(3), new Uint16Array(2), new DataView(new ArrayBuffer(2)), "text"]) {
    add(`${name}Sync(${typeof value} ${Object.prototype.toString.call(value)})`, () => attempt(() => digest(zlib[`${name}Sync`](value))));
    add(`${name}(${typeof value} ${Object.prototype.toString.call(value)}) without a callback`, () => attempt(() => zlib[name](value)));
  }
  add(`${name} with info`, () => {
    const packer = PAIRS.find((pair) => pair.includes(name))[0];
    const { buffer, engine } = zlib[`${name}Sync`](name === packer ? "abc" : zlib[`${packer}Sync`]("abc"), { info: true });
    return `${digest(buffer)} ${engine.constructor.name} ${engine.bytesWritten} ${engine instanceof zlib[capital(name)]}`;
  });
  add(`${name} as a class`, () => {
    const Class = zlib[capital(name)];
    const stream = Class();
    return [Class.name, Class.length, stream instanceof Class, stream._closed, stream.bytesWritten, Object.keys(stream).includes("bytesWritten")].join();
  });
  add(`${name} closed`, async () => {
    const stream = create(name);
    await new Promise((resolve) => stream.close(() => resolve()));
    return attempt(() => `${stream._closed} ${stream.destroyed}`);
  });
}
for (const level of [0, 1, 5, 9]) {
  for (const strategy of [0, 1, 2, 3, 4]) add(`gzip level ${level} strategy ${strategy}`, () => digest(zlib.gzipSync(inputs.mixed, { level, strategy })));
  for (const memLevel of [1, 5, 9]) add(`deflate level ${level} memLevel ${memLevel}`, () => digest(zlib.deflateSync(inputs.mixed, { level, memLevel, windowBits: 10 })));
}
for (let quality = 0; quality <= 11; quality++) {
  for (const lgwin of [10, 16, 22]) {
    const params = { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_LGWIN]: lgwin, [constants.BROTLI_PARAM_MODE]: quality % 3 };
    add(`brotli quality ${quality} window ${lgwin}`, () => digest(zlib.brotliCompressSync(inputs.text, { params })));
    add(`brotli quality ${quality} window ${lgwin}, back`, () => digest(zlib.brotliDecompressSync(zlib.brotliCompressSync(inputs.mixed, { params }))));
  }
}
for (const level of [-5, 1, 3, 9, 19]) add(`zstd level ${level}`, () => digest(zlib.zstdCompressSync(inputs.mixed, { params: { [constants.ZSTD_c_compressionLevel]: level } })));
for (const [key, value] of [["x", 1], ["9", 1], ["-1", 1], ["1", "11"], ["1", true], ["2", 99], ["400", 1], ["403", 0], ["101", 99], ["201", 1]]) {
  // The largest window does not fit into the memory of a worker, which gets a smaller one.
  if (value !== 99) add(`brotli parameter ${key} ${value}`, () => attempt(() => digest(zlib.brotliCompressSync("abc", { params: { [key]: value } }))));
  add(`brotli decoder parameter ${key} ${value}`, () => attempt(() => create("brotliDecompress", { params: { [key]: value } }).constructor.name));
  if (key !== "400") add(`zstd parameter ${key} ${value}`, () => attempt(() => digest(zlib.zstdCompressSync("abc", { params: { [key]: value } }))));
}
for (const size of [0, 3, 4, "3"]) add(`zstd of ${size} pledged bytes`, () => attempt(() => digest(zlib.zstdCompressSync("abc", { pledgedSrcSize: size }))));

// --- dictionaries
const dictionary = Buffer.from("some more text text and");
for (const [packer, unpacker] of [["deflate", "inflate"], ["deflateRaw", "inflateRaw"], ["brotliCompress", "brotliDecompress"], ["zstdCompress", "zstdDecompress"]]) {
  const packed = () => zlib[`${packer}Sync`](inputs.text, { dictionary });
  add(`${packer} with a dictionary`, () => digest(packed()));
  add(`${unpacker} with its dictionary`, () => digest(zlib[`${unpacker}Sync`](packed(), { dictionary })));
  add(`${unpacker} with its dictionary, stream`, async () => digest(await through(create(unpacker, { dictionary }), [packed()])));
  add(`${unpacker} without its dictionary`, () => digest(zlib[`${unpacker}Sync`](packed())));
  add(`${unpacker} with another dictionary`, () => attempt(() => digest(zlib[`${unpacker}Sync`](packed(), { dictionary: Buffer.from("what is this") }))));
  if (!packer.startsWith("deflate")) continue; // a reset of Node forgets the dictionary
  add(`${packer} with a dictionary, reset`, async () => {
    const stream = create(packer, { dictionary });
    stream.reset();
    return digest(await through(stream, [inputs.text]));
  });
}
add("unzip with a dictionary", () => digest(zlib.unzipSync(zlib.deflateSync(inputs.text, { dictionary }), { dictionary })));

// --- flushing, parameters and resets in the middle
const FLUSHES = { deflate: [1, 2, 3, 5], gzip: [1, 2, 3, 5], deflateRaw: [2, 3], brotliCompress: [1], zstdCompress: [1] };
for (const [name, kinds] of Object.entries(FLUSHES)) {
  const unpacker = PAIRS.find((pair) => pair[0] === name)[1];
  for (const kind of [undefined, ...kinds]) {
    add(`${name} flush ${kind}`, () => new Promise((resolve, reject) => {
      const stream = create(name);
      const sizes = [];
      const pieces = [];
      stream.on("error", reject);
      stream.on("data", (piece) => pieces.push(piece));
      stream.on("end", () => resolve(`${sizes} ${digest(zlib[`${unpacker}Sync`](Buffer.concat(pieces)))} ${digest(Buffer.concat(pieces))}`));
      stream.write(inputs.text);
      const after = () => {
        sizes.push(Buffer.concat(pieces).length);
        stream.write("more");
        stream.end();
      };
      if (kind === undefined) stream.flush(after);
      else stream.flush(kind, after);
    }));
  }
}
for (const [level, strategy] of [[9, 0], [0, 0], [1, 2], [10, 0], [1, 9], [-1, 0]]) {
  add(`params ${level} ${strategy}`, () => new Promise((resolve, reject) => {
    const stream = zlib.createDeflate({ level: 5 });
    const pieces = [];
    stream.on("error", reject);
    stream.on("data", (piece) => pieces.push(piece));
    stream.on("end", () => resolve(digest(zlib.inflateSync(Buffer.concat(pieces)))));
    stream.write(inputs.text);
    try {
      stream.params(level, strategy, (error) => (error ? reject(error) : stream.end(inputs.mixed)));
    } catch (error) {
      reject(error);
    }
  }));
}
add("a gunzip is reset", async () => {
  const stream = zlib.createGunzip();
  stream.write(zlib.gzipSync("abc").subarray(0, 5));
  await new Promise((resolve) => stream.flush(resolve));
  stream.reset();
  return digest(await through(stream, [zlib.gzipSync("def")]));
});
add("brotli decodes what was flushed", async () => {
  const stream = zlib.createBrotliCompress();
  const pieces = [];
  stream.on("data", (piece) => pieces.push(piece));
  stream.write("abc");
  await new Promise((resolve) => stream.flush(resolve));
  return String(zlib.brotliDecompressSync(Buffer.concat(pieces), { finishFlush: constants.BROTLI_OPERATION_FLUSH }));
});

// --- the module itself
add("constants", () => JSON.stringify(constants));
add("codes", () => JSON.stringify(zlib.codes));
add("names", () => Object.keys(zlib).sort().join());
add("old names", () => [zlib.Z_SYNC_FLUSH, zlib.Z_BEST_SPEED, zlib.DEFLATE, zlib.BROTLI_DECODE].join());
add("frozen", () => `${Object.isFrozen(constants)} ${Object.isFrozen(zlib.codes)}`);
for (const data of ["", "abc", "grüße", Buffer.from("abc"), new Uint16Array([1, 2]), new DataView(new ArrayBuffer(3)), new ArrayBuffer(3), 5, null, undefined]) {
  for (const value of [undefined, 0, 1, 0xffffffff, 0x100000000, -1, 1.5, "1", null]) add(`crc32 ${Object.prototype.toString.call(data)} ${String(data)} ${value}`, () => attempt(() => zlib.crc32(data, value)));
}
