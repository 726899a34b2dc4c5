import { ApolloServer } from "@apollo/server";
import { startServerAndCreateCloudflareWorkersHandler } from "@as-integrations/cloudflare-workers";

const server = new ApolloServer({ typeDefs: "type Query { hello(name: String!): String }", resolvers: { Query: { hello: (_, { name }, { user }) => `hello ${name} ${user}` } }, introspection: true });
const handler = startServerAndCreateCloudflareWorkersHandler(server, { context: async ({ request }) => ({ user: request.headers.get("x-user") }) });

export default async () => {
  const ask = (query) => handler(new Request("http://shop.example/", { method: "POST", headers: { "content-type": "application/json", "x-user": "ann" }, body: JSON.stringify({ query }) }), {}, {});
  const good = await ask('{ hello(name: "you") }');
  const bad = await ask("{ nothing }");
  return [good.status, await good.json(), bad.status, (await bad.json()).errors[0].message];
};
