// Popular packages of plain JavaScript.
import { camelCase, kebabCase } from "change-case";
import dayjs from "dayjs";
import utc from "dayjs/plugin/utc.js";
import { XMLBuilder, XMLParser } from "fast-xml-parser";
import { buildSchema, graphql } from "graphql";
import { Hono } from "hono";
import { basicAuth } from "hono/basic-auth";
import { etag } from "hono/etag";
import { marked } from "marked";
import qs from "qs";
import superjson from "superjson";
import { match, P } from "ts-pattern";
import jwt from "@tsndr/cloudflare-worker-jwt";
import { decodeTime, monotonicFactory, ulid } from "ulid";
import * as v from "valibot";
import YAML from "yaml";

dayjs.extend(utc);

const schema = buildSchema("type Query { hello(name: String!): String, list: [Int] }");
const root = { hello: ({ name }) => `hello ${name}`, list: async () => [1, 2] };
const app = new Hono();

app.get("/case", (c) => c.json([camelCase("foo-bar baz"), kebabCase("fooBarBaz")]));
app.get("/dayjs", (c) => c.json(dayjs.utc("2024-02-28T23:00:00Z").add(2, "hour").format("YYYY-MM-DD HH:mm")));
app.get("/xml", (c) => {
  const parsed = new XMLParser({ ignoreAttributes: false }).parse('<a x="1"><b>2</b><b>3</b></a>');
  return c.json([parsed, new XMLBuilder({ ignoreAttributes: false }).build(parsed)]);
});
app.post("/graphql", async (c) => c.json(await graphql({ schema, rootValue: root, source: (await c.req.json()).query })));
app.get("/marked", (c) => c.html(marked.parse("# Title\n\n* *one*\n* `two`")));
app.get("/qs", (c) => c.json([qs.parse("a[b][]=1&a[b][]=2&c=d"), qs.stringify({ a: { b: [1, 2] } })]));
app.get("/superjson", (c) => {
  const text = superjson.stringify({ when: new Date(0), set: new Set([1]), big: 5n });
  const back = superjson.parse(text);
  return c.json([back.when instanceof Date, back.set.has(1), typeof back.big]);
});
app.get("/match/:n", (c) =>
  c.text(match(Number(c.req.param("n"))).with(0, () => "zero").with(P.number.between(1, 9), () => "digit").otherwise(() => "more")),
);
app.get("/jwt", async (c) => {
  const token = await jwt.sign({ sub: "x", exp: Math.floor(Date.now() / 1000) + 60 }, "secret");
  return c.json([(await jwt.verify(token, "secret"))?.payload.sub ?? null, (await jwt.verify(token, "wrong")) ?? null]);
});
app.get("/ulid", (c) => {
  const next = monotonicFactory();
  const [first, second] = [next(5), next(5)];
  return c.json([ulid().length, decodeTime(first), first < second]);
});
app.post("/valibot", async (c) => {
  const User = v.object({ name: v.pipe(v.string(), v.minLength(2)), tags: v.optional(v.array(v.string()), []) });
  const result = v.safeParse(User, await c.req.json());
  return c.json(result.success ? result.output : v.flatten(result.issues).nested);
});
app.get("/yaml", (c) => c.json([YAML.parse("a: [1, 2]\nb:\n  - c: true\n"), YAML.stringify({ x: [1] })]));
app.use("/etag/*", etag());
app.get("/etag/x", (c) => c.text("tagged"));
app.use("/private/*", basicAuth({ username: "ann", password: "secret" }));
app.get("/private/x", (c) => c.text("inside"));
app.post("/form", async (c) => {
  const body = await c.req.parseBody({ all: true });
  return c.json([body.name, body.tag, await body.file.text(), body.file.name]);
});

export default app;
