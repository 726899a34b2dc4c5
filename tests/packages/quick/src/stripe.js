// `stripe`: against a server of the tests
import Stripe from "stripe";

export default async ({ http }) => {
  const { protocol, hostname, port } = new URL(http);
  const stripe = new Stripe("sk_test_1", { protocol: protocol.slice(0, -1), host: hostname, port, maxNetworkRetries: 0, telemetry: false });
  const customer = await stripe.customers.create({ email: "ann@example.com", metadata: { a: "1" } });
  const ids = [];
  for await (const each of stripe.customers.list({ limit: 1 })) ids.push(each.id);
  const error = await stripe.charges.create({ amount: 1, currency: "eur" }).catch((error) => [error.type, error.code, error.statusCode, error.message]);
  const payload = JSON.stringify({ id: "evt_1", object: "event", type: "charge.succeeded" });
  const header = await stripe.webhooks.generateTestHeaderStringAsync({ payload, secret: "whsec" });
  const event = await stripe.webhooks.constructEventAsync(payload, header, "whsec");
  const forged = await stripe.webhooks.constructEventAsync(payload, header, "other").catch((error) => error.type);
  return [customer.sent, ids, error, event.type, forged];
};
