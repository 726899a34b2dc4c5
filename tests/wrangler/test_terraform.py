"""The requests of Terraform's provider for Cloudflare (5.22): apply, read, plan again. The provider is not run.

A plan compares what was configured with what a read gives back. So after each create, every field that was sent must
be in the next read, equal and in the same order; and two reads must not differ.
"""

from __future__ import annotations

import base64
from typing import Any

from tests.running import Atoll
from tests.wrangler.stock import Wrangler

CODE = b"export default { fetch(request, env) { return Response.json([env.B, env.A]); }, scheduled() {} };"


def differences(sent: Any, read: Any, at: str = "") -> list[str]:
    """Where a read differs from what was sent. Further fields of the read are computed ones."""
    if isinstance(sent, dict):
        if not isinstance(read, dict):
            return [f"{at}: {sent!r} became {read!r}"]
        return [text for name, each in sent.items() for text in differences(each, read.get(name), f"{at}.{name}")]
    if isinstance(sent, list) and isinstance(read, list) and len(sent) == len(read):
        return [
            text
            for number, (one, other) in enumerate(zip(sent, read, strict=True))
            for text in differences(one, other, f"{at}[{number}]")
        ]
    return [] if sent == read else [f"{at}: {sent!r} became {read!r}"]


class Terraform:
    """A state: each resource with the path it is read from and the fields that were configured."""

    def __init__(self, wrangler: Wrangler) -> None:
        self._ask = wrangler.ask
        self.account = f"/accounts/{wrangler.account}"
        self.state: list[tuple[str, Any]] = []

    def apply(
        self, method: str, path: str, body: object, read: str = "", hidden: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Create a resource. `read` is the path below which, or at which, it is read; `hidden` is never read back."""
        told = self._ask(method, path, body)
        assert told["success"], told
        result: dict[str, Any] = told["result"]
        at = (read or path) + (f"/{result['id']}" if not read else "")
        sent = {name: each for name, each in body.items() if name not in hidden} if isinstance(body, dict) else body
        assert differences(sent, result) == [] or isinstance(body, list)
        self.state.append((at, sent))
        return result

    def read(self) -> list[Any]:
        return [self._ask("GET", at)["result"] for at, _ in self.state]

    def plan(self) -> list[str]:
        found = []
        for (at, sent), read in zip(self.state, self.read(), strict=True):
            assert read is not None, at
            found += differences(sent, read if isinstance(sent, dict) else read["schedules"], at)
        return found


BINDINGS = [
    {"type": "plain_text", "name": "B", "text": "first"},
    {"type": "kv_namespace", "name": "KV", "namespace_id": "tf-kv"},
    {"type": "json", "name": "A", "json": {"deep": [1]}},
    {"type": "queue", "name": "JOBS", "queue_name": "tf-jobs"},
    {"type": "r2_bucket", "name": "R2", "bucket_name": "tf-bucket"},
]
VERSION = {
    "compatibility_date": "2026-01-01", "compatibility_flags": ["nodejs_compat"], "main_module": "main.js",
    "modules": [
        {
            "name": "main.js", "content_type": "application/javascript+module",
            "content_base64": base64.b64encode(CODE).decode(),
        }
    ],
    "annotations": {"workers/message": "by terraform", "workers/tag": "v1"},
    "limits": {"cpu_ms": 40}, "placement": {"mode": "smart"}, "usage_model": "standard",
}  # fmt: skip
WORKER = {
    "name": "tf-worker", "tags": ["b", "a"], "logpush": False,
    "observability": {"enabled": True, "head_sampling_rate": 0.5, "logs": {"invocation_logs": False}},
    "subdomain": {"enabled": True, "previews_enabled": False},
}  # fmt: skip


def apply_stores(terraform: Terraform) -> str:
    """The stores of the worker. Returns the id of its database."""
    apply, account = terraform.apply, terraform.account
    apply("POST", f"{account}/storage/kv/namespaces", {"title": "tf-kv"})
    apply("POST", f"{account}/r2/buckets", {"name": "tf-bucket"}, read=f"{account}/r2/buckets/tf-bucket")
    settings = {"delivery_delay": 5, "message_retention_period": 3600}
    queue = {"queue_name": "tf-jobs", "settings": settings}
    apply("POST", f"{account}/queues", queue, read=f"{account}/queues/tf-jobs")
    database = apply("POST", f"{account}/d1/database", {"name": "tf-db"}, read=f"{account}/d1/database/tf-db")
    return str(database["uuid"])


def apply_places(terraform: Terraform, zone: str) -> None:
    """When and where the worker answers."""
    apply, account = terraform.apply, terraform.account
    schedules = f"{account}/workers/scripts/tf-worker/schedules"
    apply("PUT", schedules, [{"cron": "5 4 * * *"}, {"cron": "0 1 * * *"}], read=schedules)
    apply("POST", f"/zones/{zone}/workers/routes", {"pattern": "tf.example.net/api/*", "script": "tf-worker"})
    domain = {"hostname": "tf.example.org", "service": "tf-worker", "zone_id": "0123456789abcdef0123456789abcdef"}
    apply("PUT", f"{account}/workers/domains", domain)


def test_a_second_plan_has_no_differences(wrangler: Wrangler, strict: Atoll) -> None:
    terraform = Terraform(wrangler)
    apply, account = terraform.apply, terraform.account
    bindings = [{"type": "d1", "name": "DB", "id": apply_stores(terraform)}, *BINDINGS]
    worker = apply("POST", f"{account}/workers/workers", WORKER)
    assert worker["deployed_on"] is None and strict.get("tf-worker").status == 503
    versions = f"{account}/workers/workers/{worker['id']}/versions"
    version = apply("POST", versions, {**VERSION, "bindings": bindings}, hidden=("modules",))
    [module] = wrangler.ask("GET", f"{versions}/{version['id']}?include=modules")["result"]["modules"]
    assert module == VERSION["modules"][0]  # type: ignore[index]
    shares = [{"version_id": version["id"], "percentage": 100}]
    deployments = f"{account}/workers/scripts/tf-worker/deployments"
    apply("POST", deployments, {"strategy": "percentage", "versions": shares})
    assert strict.get("tf-worker").json == ["first", {"deep": [1]}]
    apply_places(terraform, wrangler.ask("GET", "/zones?name=example.net")["result"][0]["id"])
    assert strict.request("GET", "tf.example.org").json == ["first", {"deep": [1]}]
    first = terraform.read()
    assert terraform.plan() == []
    assert terraform.read() == first  # computed fields stay too

    changed = wrangler.ask("PATCH", f"{account}/workers/workers/{worker['id']}", {"tags": ["c"], "logpush": True})
    assert changed["result"]["tags"] == ["c"] and changed["result"]["observability"]["head_sampling_rate"] == 0.5
    for at, _ in reversed(terraform.state):
        if "/routes/" in at or "/domains/" in at:
            assert wrangler.ask("DELETE", at)["success"]
            assert wrangler.ask("GET", at)["success"] is False
    assert wrangler.ask("DELETE", f"{account}/workers/workers/{worker['id']}")["success"]
    assert strict.get("tf-worker").status == 404


def test_what_a_worker_cannot_do_is_said(wrangler: Wrangler) -> None:
    workers = f"/accounts/{wrangler.account}/workers/workers"
    made = wrangler.ask("POST", workers, {"name": "tf-off", "subdomain": {"enabled": False}})
    assert "always answers on its own host" in made["messages"][0]["message"]
    assert made["result"]["subdomain"]["enabled"] is False
    at = f"{workers}/{made['result']['id']}"
    assert "cannot be renamed" in wrangler.ask("PUT", at, {"name": "tf-other"})["errors"][0]["message"]
    assert wrangler.ask("POST", workers, {"name": "tf-off"})["success"] is False
    for body in ({"modules": 1}, {"modules": [{"name": "a.js", "content_type": "x", "content_base64": "%"}]}):
        assert wrangler.ask("POST", f"{at}/versions", body)["success"] is False
    assert wrangler.ask("DELETE", at)["success"]
