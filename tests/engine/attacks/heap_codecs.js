// Codecs of node:zlib in all formats, none of which is ever closed.
// expect: memory or exception
// limits: cpu_ms=5000 memory_mb=32
import zlib from "node:zlib";
const all = [];
export default {
  fetch() {
    for (;;) {
      for (const name of ["Gzip", "BrotliCompress", "ZstdCompress", "Gunzip"]) {
        const stream = new zlib[name]();
        stream.write("some data");
        all.push(stream);
      }
    }
  },
};
