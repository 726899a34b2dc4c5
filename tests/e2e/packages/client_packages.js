// Packages that call other servers with fetch, and two related ones. `env.UP` is the server's address.
import { initTRPC } from "@trpc/server";
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import { AwsClient } from "aws4fetch";
import axios from "axios";
import ky from "ky";
import { Liquid } from "liquidjs";
import superjson from "superjson";
import { z } from "zod";

const t = initTRPC.create({ transformer: superjson });
const router = t.router({
  hello: t.procedure.input(z.object({ name: z.string() })).query(({ input }) => ({ text: `hello ${input.name}`, at: new Date(0) })),
});

const routes = {
  "/ky": async (UP) => {
    const json = await ky.post(`${UP}/echo`, { json: { a: 1 }, retry: 0 }).json();
    const failed = await ky(`${UP}/status/404`, { retry: 0 }).catch((error) => [error.name, error.response.status]);
    return [json, failed];
  },
  "/axios": async (UP) => {
    const { data, status, headers } = await axios.post(`${UP}/echo`, { b: [2] });
    const failed = await axios.get(`${UP}/status/503`).catch((error) => [error.code, error.response.status]);
    return [data, status, headers["x-length"], failed];
  },
  "/aws": async (UP) => {
    const aws = new AwsClient({ accessKeyId: "id", secretAccessKey: "key", region: "us-east-1", service: "s3" });
    const answer = await aws.fetch(`${UP}/aws/object`, { method: "PUT", body: "content", aws: { datetime: "20260101T000000Z" } });
    return answer.status;
  },
  "/liquid": () => new Liquid().parseAndRender("{% for n in list %}{{ n | times: 2 }},{% endfor %}", { list: [1, 2] }),
};

export default {
  async fetch(request, { UP }) {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/trpc/")) return fetchRequestHandler({ endpoint: "/trpc", req: request, router, createContext: () => ({}) });
    return Response.json(await routes[pathname](UP));
  },
};
