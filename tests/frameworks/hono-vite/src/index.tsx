import { Hono } from "hono";
import { Suspense, renderToReadableStream } from "hono/jsx/streaming";

type Env = { Bindings: { GREETING: string; VISITS: { get(key: string): Promise<string | null>; put(key: string, value: string): Promise<void> } } };

async function Slow() {
  await new Promise((resolve) => setTimeout(resolve, 100));
  return <p>late part</p>;
}

const app = new Hono<Env>();
app.get("/", (c) => c.html(<html lang="en"><body><h1>{c.env.GREETING} from Hono</h1></body></html>));
app.get("/api/visits", async (c) => {
  const visits = Number((await c.env.VISITS.get("visits")) ?? 0) + 1;
  await c.env.VISITS.put("visits", `${visits}`);
  return c.json({ visits });
});
app.get("/stream", (c) => {
  const stream = renderToReadableStream(<html lang="en"><body><p>early part</p><Suspense fallback={<p>waiting</p>}><Slow /></Suspense></body></html>);
  return c.body(stream, { headers: { "Content-Type": "text/html; charset=UTF-8", "Transfer-Encoding": "chunked" } });
});
app.get("/lazy", async (c) => c.text((await import("./lazy")).text));
app.notFound((c) => c.text("no such page", 404));

export default app;
