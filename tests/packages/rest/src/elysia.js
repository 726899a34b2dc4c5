// `elysia`: with `aot: false`, since it writes code otherwise
import { Elysia, t } from "elysia";

const app = new Elysia({ aot: false }).get("/hello/:name", ({ params }) => ({ hello: params.name })).post("/items", ({ body }) => body, { body: t.Object({ name: t.String() }) });

export default async () => {
  const post = (body) => app.handle(new Request("http://shop.example/items", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }));
  return [await (await app.handle(new Request("http://shop.example/hello/ann"))).json(), await (await post({ name: "x" })).json(), (await post({ name: 5 })).status, (await app.handle(new Request("http://shop.example/x"))).status];
};
