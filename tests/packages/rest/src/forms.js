// `form-data`: its build for browsers, as with wrangler: the FormData of the platform
import Busboy from "busboy";
import FormData from "form-data";
import { Readable } from "node:stream";

export default async () => {
  const form = new FormData();
  form.append("name", "ann");
  const body = '--xx\r\nContent-Disposition: form-data; name="name"\r\n\r\nann\r\n--xx\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\ncontent\r\n--xx--\r\n';
  const seen = [];
  await new Promise((resolve, reject) => {
    const parser = Busboy({ headers: { "content-type": "multipart/form-data; boundary=xx" } });
    parser.on("field", (name, value) => seen.push([name, value]));
    parser.on("file", (name, file, { filename, mimeType }) => {
      let text = "";
      file.on("data", (chunk) => (text += chunk)).on("end", () => seen.push([name, filename, mimeType, text]));
    });
    parser.on("close", resolve).on("error", reject);
    Readable.from([body.slice(0, 70), body.slice(70)].map((part) => Buffer.from(part))).pipe(parser);
  });
  return seen;
};
