import { Hono } from "hono";

const app = new Hono<{ Bindings: { FROM: string } }>();

app.get("/api/hello/:name", (c) => c.json({ hello: c.req.param("name"), from: c.env.FROM }));

export default app;
