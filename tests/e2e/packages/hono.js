import { Hono } from "hono";
import { getCookie, setCookie } from "hono/cookie";
import { contextStorage, getContext } from "hono/context-storage";
import { cors } from "hono/cors";
import { HTTPException } from "hono/http-exception";
import { logger } from "hono/logger";
import { requestId } from "hono/request-id";
import { secureHeaders } from "hono/secure-headers";
import { stream, streamSSE, streamText } from "hono/streaming";
import { timing } from "hono/timing";
import { validator } from "hono/validator";

const app = new Hono();
app.use(contextStorage());
app.use(logger());
app.use("/secure/*", secureHeaders(), requestId(), timing());
app.use("/cors/*", cors({ origin: "https://a.example" }));
app.use(async (c, next) => {
  c.set("began", true);
  await next();
  c.header("x-after", "yes");
});

const deep = async () => getContext().env.GREETING;

app.get("/", (c) => c.text(`hi ${c.var.began}`));
app.get("/users/:id{[0-9]+}", (c) => c.json({ id: c.req.param("id"), q: c.req.query("q") ?? null }));
app.get("/env", async (c) => c.text(await deep()));
app.get("/secure/x", (c) => c.text("x"));
app.get("/cors/x", (c) => c.text("x"));
app.get("/cookies", (c) => {
  setCookie(c, "a", "1", { httpOnly: true, maxAge: 60 });
  setCookie(c, "b", "2");
  return c.json(getCookie(c));
});
app.post("/json", validator("json", (value, c) => (typeof value.n === "number" ? value : c.text("no", 400))), (c) => c.json({ twice: c.req.valid("json").n * 2 }));
app.get("/stream", (c) => streamText(c, async (out) => {
  for (const part of ["one ", "two ", "three"]) {
    await out.write(part);
    await out.sleep(2);
  }
}));
app.get("/bytes", (c) => stream(c, async (out) => { await out.write(new Uint8Array([104, 105])); }));
app.get("/sse", (c) => streamSSE(c, async (out) => {
  for (let id = 0; id < 2; id++) await out.writeSSE({ data: `n${id}`, event: "tick", id: String(id) });
}));
app.get("/throw", () => { throw new HTTPException(418, { message: "teapot" }); });
app.get("/break", () => { throw new Error("broken"); });
app.onError((error, c) => (error instanceof HTTPException ? error.getResponse() : c.text(`caught ${error.message}`, 500)));
app.notFound((c) => c.text("nothing here", 404));
app.route("/sub", new Hono().get("/", (c) => c.redirect("/")).all("/any", (c) => c.text(c.req.method)));

export default app;
