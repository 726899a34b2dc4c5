// https://xhr.spec.whatwg.org/#interface-formdata, and forms as bodies
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const bytes = (text) => new TextEncoder().encode(text);

function parse(body, type = "multipart/form-data; boundary=X") {
  return new Response(body, { headers: { "content-type": type } }).formData();
}

const part = (name, content) => `--X\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${content}\r\n`;

export const tests = {
  "the list of a form": () => {
    const form = new FormData();
    form.append("a", 1);
    form.append("b", "2");
    form.append("a", "3");
    equal(form.get("a"), "1");
    deepEqual(form.getAll("a"), ["1", "3"]);
    equal(form.get("none"), null);
    deepEqual(form.getAll("none"), []);
    ok(form.has("b") && !form.has("c"));
    form.set("a", "x");
    deepEqual([...form], [["a", "x"], ["b", "2"]]);
    form.set("c", "new");
    deepEqual([...form.keys()], ["a", "b", "c"]);
    deepEqual([...form.values()], ["x", "2", "new"]);
    form.delete("b");
    const seen = [];
    form.forEach((value, key, of) => seen.push(key, value, of === form));
    deepEqual(seen, ["a", "x", true, "c", "new", true]);
  },
  "wrong arguments": () => {
    const form = new FormData();
    throws(() => form.append("a"), TypeError);
    throws(() => form.append("a", "text", "file.txt"), TypeError);
    throws(() => form.set("a", {}, "file.txt"), TypeError);
    throws(() => new FormData({}), TypeError);
    throws(() => new FormData(null), TypeError);
    throws(() => FormData.prototype.get.call({}, "a"), TypeError);
    throws(() => FormData.prototype.entries.call({}), TypeError);
    equal(FormData.prototype.append.length, 2);
    equal(FormData.length, 0);
  },
  "blobs become files": async () => {
    const form = new FormData();
    form.append("a", new Blob(["x"], { type: "t/x" }));
    form.append("b", new Blob(["y"]), "name.txt");
    const file = new File(["z"], "own.txt");
    form.append("c", file);
    form.append("d", file, "other.txt");
    ok(form.get("a") instanceof File);
    equal(form.get("a").name, "blob");
    equal(form.get("a").type, "t/x");
    equal(form.get("b").name, "name.txt");
    equal(form.get("c"), file);
    equal(form.get("d").name, "other.txt");
    equal(await form.get("d").text(), "z");
  },
  "a form can be sent and parsed": async () => {
    const form = new FormData();
    form.append('quo"te\r\nline', "a\nb\r\nc\rd");
    form.append("empty", "");
    form.append("ünïcode", "✓");
    form.append("file", new File([new Uint8Array([13, 10, 45, 45, 0, 255])], 'f"ile.bin', { type: "application/x-thing" }));
    form.append("none", new File([], ""));
    const request = new Request("http://a/", { method: "POST", body: form });
    ok(/^multipart\/form-data; boundary=[-\w]{20,70}$/.test(request.headers.get("content-type")));
    const back = await request.formData();
    equal(back.get('quo"te\r\nline'), "a\r\nb\r\nc\r\nd");
    equal(back.get("empty"), "");
    equal(back.get("ünïcode"), "✓");
    const file = back.get("file");
    equal(file.name, 'f"ile.bin');
    equal(file.type, "application/x-thing");
    deepEqual([...(await file.bytes())], [13, 10, 45, 45, 0, 255]);
    equal(back.get("none").size, 0);
    equal([...back].length, 5);
    equal([...(await new Response(new FormData()).formData())].length, 0);
  },
  "the text of a form": async () => {
    const form = new FormData();
    form.append("a", "1");
    const response = new Response(form);
    const boundary = response.headers.get("content-type").split("=")[1];
    equal(
      await response.text(),
      `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--${boundary}--\r\n`,
    );
  },
  "multipart as clients write it": async () => {
    const form = await parse(
      `${part("a", "1")}--X\r\ncontent-type: image/png\r\nCONTENT-DISPOSITION: form-data; filename="x;y.png"; name=plain\r\n\r\n` +
        "\x89PNG\r\n--X--\r\nepilogue",
    );
    equal(form.get("a"), "1");
    equal(form.get("plain").name, "x;y.png");
    equal(form.get("plain").type, "image/png");
    equal((await parse(`${part("t", "\r\n--Y\r\n")}--X--`)).get("t"), "\r\n--Y\r\n");
    equal((await parse(`${part("t", "")}--X--`)).get("t"), "");
    const typed = '--X\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\nx\r\n--X--';
    equal((await parse(typed)).get("f").type, "text/plain");
    equal((await parse(part("q", "1") + "--X--", 'multipart/form-data; charset=x; boundary="X"')).get("q"), "1");
  },
  "malformed multipart is a TypeError": async () => {
    for (const body of [
      "", "--X", "--X\r\n", "nothing", "--Y--", part("a", "1"), `${part("a", "1")}--Z--`, "--X\r\n\r\nx\r\n--X--",
      '--X\r\nContent-Disposition: attachment; name="a"\r\n\r\nx\r\n--X--',
      '--X\r\nContent-Disposition: form-data; name="a\r\n\r\nx\r\n--X--',
      "--X\r\nContent-Disposition: form-data\r\n\r\nx\r\n--X--",
      "--X\r\nnonsense\r\n\r\nx\r\n--X--",
      "--Xnot\r\n\r\n--X--",
    ]) {
      await rejects(parse(body), TypeError, body);
    }
    await rejects(parse(part("a", "1") + "--X--", "multipart/form-data"), TypeError);
    await rejects(parse(part("a", "1") + "--X--", `multipart/form-data; boundary=${"X".repeat(80)}`), TypeError);
  },
  "multipart has limits": async () => {
    const many = part("a", "").repeat(10_001);
    const error = await rejects(parse(`${many}--X--`), TypeError);
    ok(error.message.includes("10,000 parts"));
    const header = await rejects(parse(`--X\r\nContent-Disposition: form-data; name="${"n".repeat(20_000)}"\r\n\r\n\r\n--X--`), TypeError);
    ok(header.message.includes("16 KB"));
    const inner = part("in", "1").replaceAll("X", "Y");
    const nested = await parse(`--X\r\nContent-Disposition: form-data; name="n"\r\nContent-Type: multipart/mixed; boundary=Y\r\n\r\n${inner}--Y--\r\n--X--`);
    equal(nested.get("n"), `${inner}--Y--`);
    const junk = await rejects(parse(bytes(`--X\r\nContent-Disposition: form-data; name="a"\r\n\r\n${"\r".repeat(300_000)}`)), TypeError);
    ok(junk.message.includes("No subsequent boundary"));
  },
  "urlencoded forms": async () => {
    const form = await parse("a=1&b=%C3%A9+x&a=2&=&flag&%=%zz", "application/x-www-form-urlencoded");
    deepEqual([...form], [["a", "1"], ["b", "é x"], ["a", "2"], ["", ""], ["flag", ""], ["%", "%zz"]]);
    equal([...(await parse(null, "application/x-www-form-urlencoded;charset=UTF-8"))].length, 0);
    deepEqual([...(await new Response(new URLSearchParams({ x: "y z" })).formData())], [["x", "y z"]]);
    await rejects(parse("&a".repeat(100_001), "application/x-www-form-urlencoded"), TypeError);
  },
  "parsing takes linear time": async () => {
    // Guards against quadratic time for spaces in a type, and against twenty times the memory for plus signs.
    const spaces = " ".repeat(1_000_000);
    const type = `multipart/form-data; a=${spaces}b; boundary=X`;
    equal((await parse(`${part("a", "1")}--X--`, type)).get("a"), "1");
    equal((await new Response("x", { headers: { "content-type": `a/b${spaces}c` } }).blob()).type, "");
    throws(() => new TextDecoder(`utf${spaces}8`), RangeError);
    equal(await (await fetch(`data:text/plain;a=${spaces}b,x`)).text(), "x");
    const [[name, value]] = await parse(`${"+".repeat(8_000_000)}=%2B${"+".repeat(2000)}`, "application/x-www-form-urlencoded");
    equal(name.length, 8_000_000);
    equal(value, `+${" ".repeat(2000)}`);
  },
  "a boundary is found among many similar lines": async () => {
    for (const count of [0, 1, 60, 61, 62, 63, 64, 65, 66, 127, 128, 129, 5000]) {
      for (const piece of ["\r", "\r\n", "\r\n-", "\r\n--", "x\r"]) {
        const content = piece.repeat(count);
        equal((await parse(`${part("a", content)}--X--`)).get("a"), content);
      }
    }
  },
  "a body of another type is not a form": async () => {
    await rejects(new Response("a=1").formData(), TypeError);
    await rejects(new Response(null).formData(), TypeError);
    await rejects(parse("{}", "application/json"), TypeError);
    const used = new Response(new URLSearchParams("a=1"));
    await used.text();
    await rejects(used.formData(), TypeError);
  },
  "a form cannot be cloned": () => {
    throws(() => structuredClone(new FormData()), "DataCloneError");
  },
};
