import { createSchema, createYoga } from "graphql-yoga";

const yoga = createYoga({
  schema: createSchema({
    typeDefs: "type Query { hello(name: String!): String fail: String } type Subscription { count(to: Int!): Int }",
    resolvers: {
      Query: { hello: (_, { name }, context) => `hello ${name} ${context.user}`, fail: () => { throw new Error("secret detail"); } },
      Subscription: { count: { async *subscribe(_, { to }) { for (let n = 1; n <= to; n++) yield { count: n }; } } },
    },
  }),
  context: ({ request }) => ({ user: request.headers.get("x-user") }),
  logging: false,
});

export default async () => {
  const ask = (query, headers) => yoga.fetch("http://shop.example/graphql", { method: "POST", headers: { "content-type": "application/json", "x-user": "ann", ...headers }, body: JSON.stringify({ query }) });
  const answer = await (await ask('{ hello(name: "you") fail }')).json();
  const invalid = await ask("{ nothing }");
  const events = await (await ask("subscription { count(to: 2) }", { accept: "text/event-stream" })).text();
  const page = await (await yoga.fetch("http://shop.example/graphql", { headers: { accept: "text/html" } })).text();
  return [answer.data, answer.errors[0].message, invalid.status, (await invalid.json()).errors[0].message, events, page.includes("<title>")];
};
