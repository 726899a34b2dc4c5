// `formidable`: uploads land in `/tmp` of the request
import formidable from "formidable";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";

export default async () => {
  const body = '--xx\r\nContent-Disposition: form-data; name="name"\r\n\r\nann\r\n--xx\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\ncontent\r\n--xx--\r\n';
  const request = Object.assign(Readable.from([Buffer.from(body)]), { headers: { "content-type": "multipart/form-data; boundary=xx", "content-length": `${body.length}` } });
  const [fields, files] = await formidable({ uploadDir: "/tmp" }).parse(request);
  const [file] = files.file;
  return [fields, file.originalFilename, file.mimetype, file.size, await readFile(file.filepath, "utf8")];
};
