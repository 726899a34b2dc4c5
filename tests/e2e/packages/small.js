// Small packages, each in its typical use.
import { parseCookie, stringifySetCookie } from "cookie";
import { AutoRouter, error } from "itty-router";
import mime from "mime";
import { customAlphabet, nanoid } from "nanoid";
import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { renderToReadableStream } from "preact-render-to-string/stream";
import { v4, v5, v7, validate } from "uuid";
import { z } from "zod";

const User = z.object({ name: z.string().min(2), email: z.email(), age: z.coerce.number().int().optional(), tags: z.array(z.string()).default([]) });
const Page = ({ title, items }) => h("html", null, h("h1", { class: "t" }, title), h("ul", null, items.map((item) => h("li", { key: item }, item))));

const router = AutoRouter();
router
  .get("/cookie", () => ({ parsed: parseCookie("a=1; b=%20x"), made: stringifySetCookie({ name: "s", value: "v w", httpOnly: true, path: "/" }) }))
  .get("/mime", () => [mime.getType("a.html"), mime.getExtension("image/png"), mime.getType("x.wasm")])
  .get("/nanoid", () => [nanoid(), customAlphabet("ab", 5)(), new Set(Array.from({ length: 500 }, () => nanoid())).size])
  .get("/uuid", () => [validate(v4()), validate(v7()), v5("hello", "6ba7b810-9dad-11d1-80b4-00c04fd430c8")])
  .post("/zod", async (request) => {
    const result = User.safeParse(await request.json());
    return result.success ? result.data : error(400, { issues: result.error.issues.map(({ path, code }) => [path.join("."), code]) });
  })
  .get("/preact", () => new Response(renderToString(h(Page, { title: "a < b", items: ["x", "y"] })), { headers: { "content-type": "text/html" } }))
  .get("/preact-stream", () => new Response(renderToReadableStream(h(Page, { title: "s", items: ["z"] }))))
  .get("/params/:a/:b?", ({ params, query }) => ({ params, query }))
  .get("/fails", () => { throw new Error("oops"); });

export default router;
