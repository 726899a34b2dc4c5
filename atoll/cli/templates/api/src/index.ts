import { Hono } from "hono";

const app = new Hono();
const books = new Map([["1", { id: "1", title: "The Sea Around Us" }]]);

app.get("/", (c) => c.text("GET /books, GET /books/:id, POST /books\n"));
app.get("/books", (c) => c.json([...books.values()]));
app.get("/books/:id", (c) => {
  const book = books.get(c.req.param("id"));
  return book ? c.json(book) : c.json({ error: "no such book" }, 404);
});
app.post("/books", async (c) => {
  const { title } = await c.req.json<{ title: string }>();
  const book = { id: String(books.size + 1), title };
  books.set(book.id, book);
  return c.json(book, 201);
});

export default app;
