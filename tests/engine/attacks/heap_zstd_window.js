// Zstandard with the largest window there is: two gigabytes.
// expect: exception or memory
// limits: cpu_ms=5000 memory_mb=32
// peak: 150
import zlib from "node:zlib";
export default {
  fetch() {
    const { ZSTD_c_compressionLevel, ZSTD_c_windowLog } = zlib.constants;
    return new Response(zlib.zstdCompressSync("abc".repeat(1e6), { params: { [ZSTD_c_compressionLevel]: 22, [ZSTD_c_windowLog]: 31 } }));
  },
};
