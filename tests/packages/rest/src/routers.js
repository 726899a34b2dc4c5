import { AutoRouter } from "itty-router";
import { initTRPC, TRPCError } from "@trpc/server";
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import { z } from "zod";

const router = AutoRouter();
router.get("/hello/:name", ({ name }) => ({ hello: name }));

const t = initTRPC.create();
const api = t.router({
  hello: t.procedure.input(z.object({ name: z.string().min(2) })).query(({ input }) => `hello ${input.name}`),
  fail: t.procedure.mutation(() => { throw new TRPCError({ code: "FORBIDDEN", message: "not you" }); }),
});
const call = (path, init) => fetchRequestHandler({ endpoint: "/trpc", req: new Request(`http://shop.example/trpc/${path}`, init), router: api, createContext: () => ({}) });

export default async () => {
  const hello = await call(`hello?input=${encodeURIComponent('{"name":"ann"}')}`);
  const refused = await call("fail", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
  const invalid = await call(`hello?input=${encodeURIComponent('{"name":"a"}')}`);
  return [await (await router.fetch(new Request("http://shop.example/hello/ann"))).json(), (await router.fetch(new Request("http://shop.example/x"))).status, await hello.json(), refused.status, (await refused.json()).error.message, invalid.status];
};
