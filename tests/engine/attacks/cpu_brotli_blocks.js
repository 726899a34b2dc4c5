// Brotli of the best quality, asked to work on sixteen megabytes at once.
// expect: cpu
// engine: may be replaced
import zlib from "node:zlib";
export default {
  fetch() {
    const data = new Uint8Array(1 << 24);
    for (let at = 0; at < data.length; at++) data[at] = (at * at * 31) >>> 7;
    const { BROTLI_PARAM_LGBLOCK, BROTLI_PARAM_LGWIN } = zlib.constants;
    return new Response(zlib.brotliCompressSync(data, { params: { [BROTLI_PARAM_LGBLOCK]: 24, [BROTLI_PARAM_LGWIN]: 24 } }));
  },
};
