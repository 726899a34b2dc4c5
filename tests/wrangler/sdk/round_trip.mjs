// Run by test_sdks.py with Cloudflare's SDK for TypeScript: list, create, change and delete everything. Prints JSON.

import Cloudflare from "cloudflare";

const account_id = process.env.CLOUDFLARE_ACCOUNT_ID;
const client = new Cloudflare(); // reads CLOUDFLARE_API_TOKEN and CLOUDFLARE_BASE_URL
const told = {};

async function all(list, name) {
  const found = [];
  for await (const each of list) found.push(each[name]);
  return found;
}

const space = await client.kv.namespaces.create({ account_id, title: "js-kv" });
await client.kv.namespaces.values.update("a", { account_id, namespace_id: space.id, value: "one" });
told.keys = await all(client.kv.namespaces.keys.list(space.id, { account_id }), "name");
told.value = await (await client.kv.namespaces.values.get("a", { account_id, namespace_id: space.id })).text();

const database = await client.d1.database.create({ account_id, name: "js-db" });
const [answer] = await all(client.d1.database.query(database.uuid, { account_id, sql: "SELECT 7 AS x" }), "results");
told.rows = answer;

await client.r2.buckets.create({ account_id, name: "js-bucket" });
told.buckets = (await client.r2.buckets.list({ account_id })).buckets.map((each) => each.name);

const queue = await client.queues.create({ account_id, queue_name: "js-jobs" });
const { queue_id } = queue;
await client.queues.consumers.create(queue_id, { account_id, type: "http_pull", settings: {} });
await client.queues.messages.push(queue_id, { account_id, body: "text", content_type: "text" });
const pulled = await client.queues.messages.pull(queue_id, { account_id });
told.pulled = pulled.messages.map((message) => message.body);
const acks = pulled.messages.map(({ lease_id }) => ({ lease_id }));
told.acks = (await client.queues.messages.ack(queue_id, { account_id, acks })).ackCount;

const worker = await client.workers.beta.workers.create({ account_id, name: "js-sdk" });
const content_base64 = btoa("export default { fetch() { return new Response('hi'); } };");
const modules = [{ name: "main.js", content_type: "application/javascript+module", content_base64 }];
const version = await client.workers.beta.workers.versions.create(worker.id, {
  account_id, main_module: "main.js", modules, compatibility_date: "2026-01-01",
});
await client.workers.scripts.deployments.create("js-sdk", {
  account_id, strategy: "percentage", versions: [{ version_id: version.id, percentage: 100 }],
});
told.workers = (await all(client.workers.beta.workers.list({ account_id }), "name")).filter((each) => each === "js-sdk");
told.versions = await all(client.workers.beta.workers.versions.list(worker.id, { account_id }), "number");
told.missing = await client.queues.get("nowhere", { account_id }).catch((error) => error.status);

await client.workers.beta.workers.delete(worker.id, { account_id });
await client.queues.delete(queue_id, { account_id });
await client.r2.buckets.delete("js-bucket", { account_id });
await client.d1.database.delete(database.uuid, { account_id });
await client.kv.namespaces.delete(space.id, { account_id });
console.log(JSON.stringify(told));
