// Brotli encoders, each of which would take the whole memory of its worker: the library ends the process when it gets none.
// expect: memory or exception
// limits: cpu_ms=3000 memory_mb=64
// peak: 300
import zlib from "node:zlib";
const all = [];
export default {
  async fetch() {
    for (const bits of [22, 24, 30]) {
      const params = { [zlib.constants.BROTLI_PARAM_LGWIN]: bits, [zlib.constants.BROTLI_PARAM_LARGE_WINDOW]: 1 };
      for (let count = 0; count < 50; count++) all.push(zlib.createBrotliCompress({ params }));
    }
    const data = new Uint8Array(1 << 20);
    for (let at = 0; at < data.length; at++) data[at] = (at * at * 31) >>> 7;
    for (const one of all) {
      one.write(data);
      await new Promise((resolve, reject) => one.on("error", reject).flush(resolve));
    }
    return new Response("all of them have memory");
  },
};
