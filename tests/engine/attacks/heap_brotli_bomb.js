// A hundred megabytes of zeros that Brotli compresses to a hundred bytes.
// expect: memory or exception
// limits: cpu_ms=3000 memory_mb=32
// peak: 150
import { Buffer } from "node:buffer";
import zlib from "node:zlib";
export default {
  async fetch() {
    const parts = [];
    const packer = zlib.createBrotliCompress({ params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } });
    packer.on("data", (part) => parts.push(part));
    for (let round = 0; round < 100; round++) await new Promise((resolve) => packer.write(new Uint8Array(1e6), resolve));
    await new Promise((resolve) => packer.end(resolve));
    return new Response(zlib.brotliDecompressSync(Buffer.concat(parts)));
  },
};
