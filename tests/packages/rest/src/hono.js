import { Hono } from "hono";
import { cors } from "hono/cors";
import { sign, verify } from "hono/jwt";
import { streamText } from "hono/streaming";

const app = new Hono().use(cors());
app.get("/items/:id", (c) => c.json({ id: c.req.param("id"), q: c.req.query("q") }));
app.get("/stream", (c) => streamText(c, async (stream) => void (await stream.write("a"), await stream.write("b"))));
app.onError((error, c) => c.text(`failed: ${error.message}`, 500));
app.get("/fail", () => { throw new Error("broken"); });

export default async () => {
  const one = await app.request("/items/7?q=x");
  const token = await sign({ user: "ann" }, "secret", "HS256");
  return [await one.json(), one.headers.get("access-control-allow-origin"), await (await app.request("/stream")).text(), await (await app.request("/fail")).text(), (await app.request("/nothing")).status, await verify(token, "secret", "HS256")];
};
