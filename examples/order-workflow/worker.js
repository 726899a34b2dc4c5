import { WorkflowEntrypoint } from "cloudflare:workers";
import { NonRetryableError } from "cloudflare:workflows";

const PRICES = { cat: 12, dog: 15 };

export class OrderWorkflow extends WorkflowEntrypoint {
  async run(event, step) {
    const { item } = event.payload;
    const price = await step.do("look up the price", () => {
      if (!(item in PRICES)) throw new NonRetryableError(`we have no ${item}`);
      return PRICES[item];
    });
    // Nothing runs while it waits. The event may come in three days, after restarts and deploys.
    const payment = await step.waitForEvent("payment", { type: "paid", timeout: "3 days" });
    if (payment.payload.amount < price) throw new NonRetryableError(`${payment.payload.amount} is less than ${price}`);
    const parcel = await step.do("ship", { retries: { limit: 10, delay: "10 seconds", backoff: "linear" } }, async () => {
      return { parcel: crypto.randomUUID(), item }; // call the carrier here: it is tried again if that fails
    });
    await step.sleep("let the parcel leave", 100);
    return parcel;
  }
}

export default {
  async fetch(request, env) {
    const [, id, action] = new URL(request.url).pathname.split("/");
    if (request.method === "POST" && id === "") {
      const order = await env.ORDERS.create({ params: await request.json() });
      return Response.json({ id: order.id }, { status: 201 });
    }
    const order = await env.ORDERS.get(id).catch(() => null);
    if (order === null) return new Response("There is no such order.\n", { status: 404 });
    if (action === "pay") await order.sendEvent({ type: "paid", payload: await request.json() });
    return Response.json(await order.status());
  },
};
