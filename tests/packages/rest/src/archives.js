import { ZipArchive } from "archiver";
import { gunzipSync, gzipSync, strFromU8, strToU8, unzipSync, zipSync } from "fflate";
import JSZip from "jszip";
import tar from "tar-stream";

async function collect(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
}

export default async () => {
  const archive = new ZipArchive({ zlib: { level: 9 } });
  archive.append("hello ".repeat(100), { name: "a.txt", date: new Date(0) });
  archive.append(Buffer.from([1, 2, 3]), { name: "folder/b.bin", date: new Date(0) });
  archive.finalize();
  const zipped = await collect(archive);
  const zip = await JSZip.loadAsync(zipped);
  zip.file("c.txt", "日本");
  const again = unzipSync(await zip.generateAsync({ type: "uint8array", compression: "DEFLATE" }));
  const pack = tar.pack();
  pack.entry({ name: "a.txt", mtime: new Date(0) }, "in a tar");
  pack.entry({ name: "b.txt", mtime: new Date(0) }, "x".repeat(2000));
  pack.finalize();
  const extract = tar.extract();
  const entries = [];
  extract.on("entry", async (header, stream, next) => {
    entries.push([header.name, (await collect(stream)).toString().slice(0, 10)]);
    next();
  });
  const packed = await collect(pack);
  await new Promise((resolve) => extract.on("finish", resolve).end(packed));
  return [Object.keys(again), (await zip.file("a.txt").async("string")).length, strFromU8(again["c.txt"]), entries, packed.length, strFromU8(gunzipSync(gzipSync(strToU8("round trip")))), Object.keys(unzipSync(zipSync({ "a/b.txt": strToU8("x") })))];
};
