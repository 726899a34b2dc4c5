import { Hono } from "hono";
import { cors } from "hono/cors";
import { HTTPException } from "hono/http-exception";
import { Buffer } from "node:buffer";
import { Todo, todos } from "@/todos";

type Bindings = { TITLE: string };
const app = new Hono<{ Bindings: Bindings }>();

app.use("/api/*", cors());
app.get("/", (c) =>
  c.html(
    <html>
      <body>
        <h1>{c.env.TITLE}</h1>
        <ul>
          {todos.map((todo) => (
            <li>{todo.title}</li>
          ))}
        </ul>
      </body>
    </html>,
  ),
);
app.get("/api/todos", (c) => c.json(todos));
app.post("/api/todos", async (c) => {
  const parsed = Todo.safeParse(await c.req.json());
  if (!parsed.success) throw new HTTPException(400, { message: parsed.error.issues[0]?.message });
  todos.push(parsed.data);
  return c.json(parsed.data, 201);
});
app.get("/api/basic/:name", (c) => c.text(Buffer.from(c.req.param("name")).toString("base64")));

export default app;
