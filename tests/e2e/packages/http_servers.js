// Express, Koa and Fastify, each behind `cloudflare:node`.
import { handleAsNodeRequest, httpServerHandler } from "cloudflare:node";
import express from "express";
import Koa from "koa";
import Fastify from "fastify";

const app = express();
app.use(express.json());
app.use(express.urlencoded({ extended: true }));
app.get("/", (request, response) => response.set("X-Served", "express").send("hello from express"));
app.get("/users/:id", (request, response) => response.json({ id: request.params.id, query: request.query, ip: typeof request.ip, host: request.hostname }));
app.post("/echo", (request, response) => response.status(201).json(request.body));
app.get("/moved", (request, response) => response.redirect("/express/"));
app.get("/cookie", (request, response) => response.cookie("a", "1").cookie("b", "2").send("ok"));
app.get("/stream", async (request, response) => {
  for (let i = 0; i < 5; i++) {
    response.write(`line ${i}\n`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  response.end();
});
app.get("/throws", () => {
  throw new Error("on purpose");
});
// Express tells handlers of errors by their four arguments.
app.use((error, request, response, _) => response.status(500).send(`caught: ${error.message}${_ === undefined ? "?" : ""}`));
app.listen(3000);

const koa = new Koa();
koa.silent = true;
koa.use(async (context, next) => {
  await next();
  context.set("X-Served", "koa");
});
koa.use((context) => {
  if (context.path === "/throws") context.throw(418, "short and stout");
  if (context.path === "/nothing") return;
  context.body = { path: context.path, query: { ...context.query }, method: context.method, secure: context.secure };
});
koa.listen(3001);

const fastify = Fastify();
fastify.get("/", async () => ({ hello: "fastify" }));
fastify.post("/echo", { schema: { body: { type: "object", required: ["name"], properties: { name: { type: "string" } } } } }, async (request) => request.body);
fastify.get("/users/:id", (request, reply) => reply.header("x-served", "fastify").send({ id: request.params.id }));
const ready = fastify.ready().then(() => fastify.server.listen(3002));

const servers = { express: 3000, koa: 3001, fastify: 3002 };

export default {
  async fetch(request, env, ctx) {
    await ready;
    const url = new URL(request.url);
    const [, name] = url.pathname.split("/");
    url.pathname = url.pathname.slice(name.length + 1) || "/";
    return handleAsNodeRequest(servers[name], new Request(url, request), env, ctx);
  },
};

export const whole = httpServerHandler({ port: 3000 });
