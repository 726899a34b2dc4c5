// https://compression.spec.whatwg.org/
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const FORMATS = ["gzip", "deflate", "deflate-raw"];
const bytes = (text) => new TextEncoder().encode(text);

function through(data, transform) {
  return new Response(new Blob([data]).stream().pipeThrough(transform)).bytes();
}

const compress = (data, format) => through(data, new CompressionStream(format));
const decompress = (data, format) => through(data, new DecompressionStream(format));

// This many megabytes of zeros.
function makeBomb(megabytes) {
  const zeros = new Uint8Array(1 << 20);
  return new Response(ReadableStream.from(Array(megabytes).fill(zeros)).pipeThrough(new CompressionStream("gzip"))).bytes();
}

export const tests = {
  "compressed data decompresses to the original": async () => {
    const noise = crypto.getRandomValues(new Uint8Array(60_000));
    for (const format of FORMATS) {
      for (const data of [bytes("hello hello hello"), new Uint8Array(0), new Uint8Array(500_000), noise]) {
        deepEqual(await decompress(await compress(data, format), format), data, `${format} ${data.length}`);
      }
      ok((await compress(new Uint8Array(100_000), format)).length < 500);
    }
  },
  "the formats match other implementations": async () => {
    // Written by Python: "expected output".
    const expected = "expected output";
    const known = {
      deflate: "eJxLrShITS5JTVHILy0pKC0BADCtBiQ=",
      "deflate-raw": "S60oSE0uSU1RyC8tKSgtAQA=",
      gzip: "H4sIAAAAAAACA0utKEhNLklNUcgvLSkoLQEAsAE5sw8AAAA=",
    };
    for (const format of FORMATS) {
      const data = Uint8Array.from(atob(known[format]), (char) => char.charCodeAt(0));
      equal(new TextDecoder().decode(await decompress(data, format)), expected);
    }
    const gzip = await compress(bytes("x"), "gzip");
    deepEqual([...gzip.slice(0, 3)], [0x1f, 0x8b, 8]);
  },
  "only known formats": () => {
    for (const Class of [CompressionStream, DecompressionStream]) {
      for (const wrong of ["", "GZIP", "br", null, {}]) throws(() => new Class(wrong), TypeError);
      throws(() => new Class(), TypeError);
      throws(() => Class("gzip"), TypeError);
      const stream = new Class("gzip");
      ok(stream.readable instanceof ReadableStream && stream.writable instanceof WritableStream);
      equal(String(stream), `[object ${Class.name}]`);
    }
  },
  "any bytes in any pieces": async () => {
    const zipped = await compress(bytes("one two three"), "gzip");
    const stream = new DecompressionStream("gzip");
    const text = new Response(stream.readable).text();
    const writer = stream.writable.getWriter();
    for (const byte of zipped) {
      writer.write(new Uint8Array(0));
      writer.write(new Uint8Array([byte]).buffer);
    }
    await writer.close();
    equal(await text, "one two three");
  },
  "chunks other than bytes break the stream": async () => {
    for (const Class of [CompressionStream, DecompressionStream]) {
      for (const wrong of [undefined, null, 3, {}, [1]]) {
        const stream = new Class("gzip");
        const reader = stream.readable.getReader();
        const read = rejects(reader.read(), TypeError);
        await rejects(stream.writable.getWriter().write(wrong), TypeError);
        await read;
      }
    }
  },
  "truncated, trailing and broken data": async () => {
    for (const format of FORMATS) {
      const zipped = await compress(bytes("some text to be compressed"), format);
      await rejects(decompress(zipped.slice(0, -1), format), TypeError, `${format} truncated`);
      await rejects(decompress(new Uint8Array(0), format), TypeError, `${format} empty`);
      await rejects(decompress(new Blob([zipped, new Uint8Array([0])]), format), TypeError, `${format} trailing`);
      const broken = zipped.slice();
      broken[0] ^= 0xff;
      await rejects(decompress(broken, format), TypeError, `${format} broken`);
    }
    const zipped = await compress(bytes("x"), "gzip");
    await rejects(decompress(new Blob([zipped, zipped]), "gzip"), TypeError);
    const sum = zipped.slice();
    sum[sum.length - 6] ^= 1;
    await rejects(decompress(sum, "gzip"), TypeError);
  },
  "a later chunk after the end is an error too": async () => {
    const stream = new DecompressionStream("deflate");
    const reader = stream.readable.getReader();
    const writer = stream.writable.getWriter();
    const first = writer.write(await compress(bytes("x"), "deflate"));
    equal((await reader.read()).value.length, 1);
    await first;
    const read = rejects(reader.read(), TypeError);
    await rejects(writer.write(new Uint8Array(1)), TypeError);
    await read;
  },
  "a zip bomb is decompressed only on demand": async () => {
    const bomb = await makeBomb(64);
    ok(bomb.length < 100_000);
    const stream = new DecompressionStream("gzip");
    const writer = stream.writable.getWriter();
    let written = false;
    const writing = writer.write(bomb).then(() => (written = true), () => {});
    const reader = stream.readable.getReader();
    for (let i = 0; i < 5; i++) ok((await reader.read()).value.length <= 65_536);
    equal(written, false);
    await reader.cancel("enough");
    await writing;
    await rejects(writer.close());
  },
  "the end of one side is the end of the other": async () => {
    const canceled = new CompressionStream("gzip");
    const writer = canceled.writable.getWriter();
    await canceled.readable.cancel(new RangeError("why"));
    await rejects(writer.write(bytes("x")), RangeError);
    const aborted = new DecompressionStream("gzip");
    const reader = aborted.readable.getReader();
    const read = rejects(reader.read(), RangeError);
    await aborted.writable.abort(new RangeError("why"));
    await read;
    const waiting = new CompressionStream("gzip");
    const noise = crypto.getRandomValues(new Uint8Array(60_000));
    waiting.writable.getWriter().write(noise).catch(() => {});
    const rest = waiting.readable.getReader();
    ok((await rest.read()).value.length > 0);
  },
  "a response can be piped through": async () => {
    const response = new Response(new Response("payload").body.pipeThrough(new CompressionStream("gzip")));
    equal(await new Response(response.body.pipeThrough(new DecompressionStream("gzip"))).text(), "payload");
  },
  "data of any size in pieces of any size": async () => {
    const pattern = Uint8Array.from({ length: 997 }, (_, index) => (index * index * 31) % 251);
    for (const size of [1, 65_535, 65_536, 65_537, 65_636, 131_072, 400_000]) {
      const repeated = Uint8Array.from({ length: size }, (_, index) => pattern[index % 997]);
      for (const data of [new Uint8Array(size), repeated]) {
        for (const format of FORMATS) {
          const packed = await compress(data, format);
          for (const piece of [1, 7, 1000, 65_536, packed.length - 1, packed.length]) {
            if (piece < 1 || packed.length / piece > 2000) continue;
            const pieces = [];
            for (let at = 0; at < packed.length; at += piece) pieces.push(packed.slice(at, at + piece));
            const out = await new Response(ReadableStream.from(pieces).pipeThrough(new DecompressionStream(format))).bytes();
            ok(out.length === size && out.every((byte, index) => byte === data[index]), `${format} ${size} by ${piece}`);
          }
        }
      }
    }
  },
  "a chunk detached before its end is read is an error": async () => {
    for (const [Class, chunk] of [[CompressionStream, crypto.getRandomValues(new Uint8Array(60_000))], [DecompressionStream, await makeBomb(4)]]) {
      const chunks = Class === CompressionStream ? new Blob(Array(8).fill(chunk)).bytes() : chunk;
      const bytes = await chunks;
      const stream = new Class("gzip");
      const writing = rejects(stream.writable.getWriter().write(bytes), TypeError);
      const reader = stream.readable.getReader();
      await reader.read();
      structuredClone(bytes, { transfer: [bytes.buffer] });
      await rejects((async () => { while (!(await reader.read()).done); })(), TypeError);
      await writing;
    }
  },
};
