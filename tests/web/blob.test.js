// https://w3c.github.io/FileAPI/
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const bytes = (text) => new TextEncoder().encode(text);

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(...chunk);
  return new TextDecoder().decode(new Uint8Array(chunks));
}

export const tests = {
  "a blob is its parts, one after the other": async () => {
    const blob = new Blob(["é", bytes("b"), bytes("cd").buffer, new DataView(bytes("e").buffer), new Blob(["f"]), 5]);
    equal(blob.size, 8);
    equal(blob.type, "");
    equal(await blob.text(), "ébcdef5");
    deepEqual(await blob.bytes(), bytes("ébcdef5"));
    ok((await blob.arrayBuffer()) instanceof ArrayBuffer);
    equal(await collect(blob.stream()), "ébcdef5");
    equal(new Blob().size, 0);
    equal(await new Blob([]).text(), "");
    equal(await new Blob(["\ud800"]).text(), "\ufffd");
    equal(await new Blob(new Set(["a", "b"])).text(), "ab");
  },
  "a blob as a stream of text": async () => {
    let text = "";
    for await (const piece of new Blob(["é".repeat(50_000)]).textStream()) text += piece;
    equal(text, "é".repeat(50_000));
  },
  "a value that is not a sequence is refused": () => {
    for (const wrong of ["text", 5, null, {}, true, new Date()]) throws(() => new Blob(wrong), TypeError);
    throws(() => Blob(), TypeError);
    throws(() => new Blob([], "x"), TypeError);
    throws(() => new Blob([], { endings: "other" }), TypeError);
    throws(() => Object.getOwnPropertyDescriptor(Blob.prototype, "size").get.call({}), TypeError);
  },
  "parts are read and converted one after the other": async () => {
    const seen = [];
    const parts = [
      { toString: () => (seen.push("first"), parts.pop(), "a") },
      { toString: () => (seen.push("second"), "b") },
    ];
    equal(await new Blob(parts).text(), "a");
    deepEqual(seen, ["first"]);
    let asked = 0;
    const iterable = {
      get [Symbol.iterator]() {
        asked++;
        return () => ["x", "y"].values();
      },
    };
    equal(await new Blob(iterable).text(), "xy");
    equal(asked, 1);
  },
  "the type is lower case and printable": () => {
    equal(new Blob([], { type: "Text/HTML" }).type, "text/html");
    equal(new Blob([], { type: "a\tb" }).type, "");
    equal(new Blob([], { type: "é" }).type, "");
    equal(new Blob([], { type: null }).type, "null");
  },
  "line endings can be made native": async () => {
    equal(await new Blob(["a\r\nb\rc\nd"], { endings: "native" }).text(), "a\nb\nc\nd");
    equal(await new Blob(["a\r\nb"]).text(), "a\r\nb");
    equal(await new Blob([bytes("a\r\n")], { endings: "native" }).text(), "a\r\n");
  },
  "slices": async () => {
    const blob = new Blob(["0123456789"], { type: "a/b" });
    const text = (...args) => blob.slice(...args).text();
    equal(await text(), "0123456789");
    equal(await text(2), "23456789");
    equal(await text(2, 5), "234");
    equal(await text(-3), "789");
    equal(await text(-3, -1), "78");
    equal(await text(5, 2), "");
    equal(await text(0, 1e9), "0123456789");
    equal(await text(NaN, Infinity), "0123456789");
    equal(blob.slice().type, "");
    equal(blob.slice(0, 1, "X/y").type, "x/y");
    equal(await blob.slice(2, 8).slice(1, 3).text(), "34");
    equal(await new Blob([blob.slice(8), blob.slice(0, 2)]).text(), "8901");
  },
  "the bytes of a blob cannot be changed": async () => {
    const data = bytes("before");
    const blob = new Blob([data]);
    data.fill(0);
    (await blob.bytes()).fill(0);
    new Uint8Array(await blob.arrayBuffer()).fill(0);
    new Uint8Array(await new Response(blob).arrayBuffer()).fill(0);
    (await new Response(blob).bytes()).fill(0);
    for await (const chunk of blob.stream()) chunk.fill(0);
    equal(await blob.text(), "before");
  },
  "the stream of a large blob is read in pieces and fills given buffers": async () => {
    const blob = new Blob([new Uint8Array(200_000).fill(7)]);
    let pieces = 0;
    let total = 0;
    for await (const chunk of blob.stream()) {
      pieces++;
      total += chunk.length;
    }
    equal(total, 200_000);
    ok(pieces > 1);
    const reader = blob.stream().getReader({ mode: "byob" });
    equal((await reader.read(new Uint8Array(10))).value.length, 10);
  },
  "a file has a name and a time": async () => {
    const file = new File(["abc"], "a/b.txt", { type: "text/plain", lastModified: 5.9 });
    ok(file instanceof Blob);
    equal(file.name, "a/b.txt");
    equal(file.lastModified, 5);
    equal(file.size, 3);
    equal(file.type, "text/plain");
    equal(await file.text(), "abc");
    equal(String(file), "[object File]");
    ok(Math.abs(new File([], "x").lastModified - Date.now()) < 60_000);
    equal(new File([], "\ud800").name, "\ufffd");
    ok(!(file.slice() instanceof File));
    throws(() => new File(["x"]), TypeError);
    throws(() => new File("x", "y"), TypeError);
    ok(Object.getOwnPropertyDescriptor(File.prototype, "name").enumerable);
    equal(File.length, 2);
    equal(Blob.length, 0);
  },
  "blobs and files are cloned by structuredClone": async () => {
    const { blob, file } = structuredClone({ blob: new Blob(["x"], { type: "a/b" }), file: new File(["yz"], "n", { lastModified: 1 }) });
    ok(blob instanceof Blob && !(blob instanceof File));
    equal(blob.type, "a/b");
    equal(await blob.text(), "x");
    ok(file instanceof File);
    equal(file.name, "n");
    equal(file.lastModified, 1);
    equal(await file.text(), "yz");
  },
  "a blob can be a body and sets its type": async () => {
    const response = new Response(new Blob(["hello"], { type: "text/html" }));
    equal(response.headers.get("content-type"), "text/html");
    equal(new Response(new Blob(["x"])).headers.get("content-type"), null);
    equal(await response.clone().text(), "hello");
    const blob = await response.blob();
    equal(blob.type, "text/html");
    equal(await blob.text(), "hello");
    const request = new Request("http://a/", { method: "POST", body: new Blob(["x"], { type: "a/b" }) });
    equal(request.headers.get("content-type"), "a/b");
    await rejects(response.blob(), TypeError);
  },
  "a forged type does not become a header": async () => {
    const blob = new Blob(["x"], { type: "a/b" });
    Object.defineProperty(blob, "type", { value: "x\r\nset-cookie: a=b" });
    equal(new Response(blob).headers.get("content-type"), "a/b");
    const form = new FormData();
    form.append("a", blob);
    equal(form.get("a").type, "a/b");
    const file = new File(["x"], "name");
    Object.defineProperty(file, "name", { value: 'a"\r\nb: c' });
    form.append("b", file);
    equal((await new Response(form).formData()).get("b").name, "name");
  },
  "the type of blob() follows the header": async () => {
    const type = async (value) => (await new Response("", { headers: { "content-type": value } }).blob()).type;
    equal(await type("Text/HTML; Charset=UTF-8"), "text/html;charset=UTF-8");
    equal(await type('a/b; c="d e"; c=f'), 'a/b;c="d e"');
    equal(await type("nonsense"), "");
    equal(await type("text/html, text/plain;charset=x"), "text/plain;charset=x");
    equal(await type("text/html;charset=gbk, text/html"), "text/html;charset=gbk");
    equal((await new Response("x").blob()).type, "text/plain;charset=utf-8".replace("utf", "UTF"));
    equal((await new Response(new Uint8Array(1)).blob()).type, "");
    equal((await new Response(null).blob()).size, 0);
  },
};
