"""Run by test_sdks.py with Cloudflare's SDK for Python: list, create, change and delete everything. Prints JSON."""

import base64
import json
import os
import sys

from cloudflare import Cloudflare, ConflictError, NotFoundError

account, name = os.environ["CLOUDFLARE_ACCOUNT_ID"], "py-sdk"
client = Cloudflare()  # reads CLOUDFLARE_API_TOKEN and CLOUDFLARE_BASE_URL
told: dict[str, object] = {}

space = client.kv.namespaces.create(account_id=account, title="py-kv")
client.kv.namespaces.values.update("a", account_id=account, namespace_id=space.id, value=b"one")
client.kv.namespaces.bulk_update(space.id, account_id=account, body=[{"key": "b", "value": "two"}])
told["keys"] = [key.name for key in client.kv.namespaces.keys.list(space.id, account_id=account)]
told["value"] = client.kv.namespaces.values.get("a", account_id=account, namespace_id=space.id).text()

database = client.d1.database.create(account_id=account, name="py-db")
query = client.d1.database.query
query(database.uuid, account_id=account, sql="CREATE TABLE t (x INTEGER)")
query(database.uuid, account_id=account, sql="INSERT INTO t VALUES (?)", params=["7"])
told["rows"] = [row for each in query(database.uuid, account_id=account, sql="SELECT x FROM t") for row in each.results]

client.r2.buckets.create(account_id=account, name="py-bucket")
told["buckets"] = [b.name for b in client.r2.buckets.list(account_id=account).buckets if b.name == "py-bucket"]

queue = client.queues.create(account_id=account, queue_name="py-jobs")
client.queues.consumers.create(queue.queue_id, account_id=account, type="http_pull", settings={"max_retries": 1})
client.queues.messages.push(queue.queue_id, account_id=account, body={"job": 1}, content_type="json")
client.queues.messages.bulk_push(
    queue.queue_id, account_id=account, messages=[{"body": "text", "content_type": "text"}]
)
pulled = client.queues.messages.pull(queue.queue_id, account_id=account, batch_size=10, visibility_timeout_ms=20_000)
told["pulled"] = [m.body if m.body == "text" else json.loads(base64.b64decode(m.body)) for m in pulled.messages]
again = client.queues.messages.pull(queue.queue_id, account_id=account)
told["hidden"] = len(again.messages)
first, second = pulled.messages
settled = client.queues.messages.ack(
    queue.queue_id, account_id=account, acks=[{"lease_id": first.lease_id}], retries=[{"lease_id": second.lease_id}]
)
told["settled"] = [settled.ack_count, settled.retry_count]
retried = client.queues.messages.pull(queue.queue_id, account_id=account).messages
told["attempts"] = [m.attempts for m in retried]
client.queues.edit(queue.queue_id, account_id=account, settings={"delivery_paused": True})
told["paused"] = client.queues.get(queue.queue_id, account_id=account).settings.delivery_paused
client.queues.purge.start(queue.queue_id, account_id=account, delete_messages_permanently=True)
[consumer] = list(client.queues.consumers.list(queue.queue_id, account_id=account))
told["consumer"] = consumer.type
client.queues.consumers.delete(consumer.consumer_id, account_id=account, queue_id=queue.queue_id)

worker = client.workers.beta.workers.create(account_id=account, name=name, tags=["sdk"])
code = b"export default { fetch(request, env) { return new Response(env.WORD + env.SECRET); } };"
module = {
    "name": "main.js", "content_type": "application/javascript+module",
    "content_base64": base64.b64encode(code).decode(),
}  # fmt: skip
version = client.workers.beta.workers.versions.create(
    worker.id, account_id=account, main_module="main.js", modules=[module], compatibility_date="2026-01-01",
    bindings=[{"type": "plain_text", "name": "WORD", "text": "hi "}],
)  # fmt: skip
client.workers.scripts.deployments.create(
    name, account_id=account, strategy="percentage", versions=[{"version_id": version.id, "percentage": 100}]
)
client.workers.scripts.secrets.update(name, account_id=account, name="SECRET", text="hush", type="secret_text")
told["secrets"] = [each.name for each in client.workers.scripts.secrets.list(name, account_id=account)]
told["workers"] = [w.name for w in client.workers.beta.workers.list(account_id=account) if w.name == name]
told["versions"] = len(list(client.workers.beta.workers.versions.list(worker.id, account_id=account)))
changed = client.workers.beta.workers.edit(
    worker.id, account_id=account, name=name, tags=["other"], logpush=False, observability={"enabled": True},
    subdomain={"enabled": True}, tail_consumers=[],
)  # fmt: skip
told["tags"] = sorted(changed.tags)
client.workers.scripts.update(
    "py-script", account_id=account, metadata={"main_module": "main.js", "compatibility_date": "2026-01-01"},
    files=[("main.js", code, "application/javascript+module")],
)  # fmt: skip
told["scripts"] = [s.id for s in client.workers.scripts.list(account_id=account) if s.id == "py-script"]
zone = client.zones.list(name="py.example.com").result[0].id
route = client.workers.routes.create(zone_id=zone, pattern="py.example.com/*", script=name)
told["routes"] = [each.pattern for each in client.workers.routes.list(zone_id=zone) if each.script == name]
client.workers.routes.delete(route.id, zone_id=zone)
domain = client.workers.domains.update(account_id=account, hostname="py.example.org", service=name, zone_id=zone)
told["domains"] = [each.hostname for each in client.workers.domains.list(account_id=account, service=name)]
client.workers.domains.delete(domain.id, account_id=account)

try:
    client.kv.namespaces.create(account_id=account, title="py-kv")
except Exception as error:
    told["taken"] = getattr(error, "status_code", str(error))
try:
    client.workers.beta.workers.get("nowhere", account_id=account)
except NotFoundError as error:
    told["missing"] = error.errors[0].code
try:
    client.queues.create(account_id=account, queue_name="py-jobs")
except ConflictError as error:
    told["conflict"] = error.errors[0].code

client.workers.beta.workers.delete(worker.id, account_id=account)
client.workers.scripts.delete("py-script", account_id=account)
client.queues.delete(queue.queue_id, account_id=account)
client.r2.buckets.delete("py-bucket", account_id=account)
client.d1.database.delete(database.uuid, account_id=account)
client.kv.namespaces.delete(space.id, account_id=account)
told["left"] = [w.name for w in client.workers.beta.workers.list(account_id=account) if w.name == name]
sys.stdout.write(json.dumps(told))
