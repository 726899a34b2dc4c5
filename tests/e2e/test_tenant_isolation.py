"""Two tenants on one node, and every endpoint: resources of one tenant do not exist for the other.

The list of endpoints is the node's own OpenAPI document, so a new endpoint is tested or fails here. The stranger calls
each endpoint that names a resource twice, for a resource of the other tenant and for one that does not exist. The
answers must be equal except for the name. Afterwards everything of the other tenant is unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.running import Answer, Atoll

SCRIPT = """import { WorkflowEntrypoint } from "cloudflare:workers";
export default {
  async fetch(request, env) {
    console.log("acmething said");
    env.AE.writeDataPoint({ blobs: ["acmething"] });
    await env.RL.limit({ key: "acmething" });
    await (await caches.open("acmething-cache")).put("http://acmething/", new Response("acmething"));
    if (request.url.endsWith("/boom")) throw new TypeError("acmething broke");
    if (request.url.endsWith("/object")) return env.DO.getByName("acmething").fetch(request);
    return new Response("ok " + env.ACMETHING_VAR);
  },
  scheduled() {}, queue() {},
}
export class AcmethingFlow extends WorkflowEntrypoint {
  async run(event, step) { await step.waitForEvent("acmething waits", { type: "acmething" }); }
}
export class AcmethingClass {
  constructor(ctx) { this.ctx = ctx; }
  async fetch() { await this.ctx.storage.put("a", 1); return new Response(`${this.ctx.id}`); }
}"""
MINE = {  # resources of Acme, by the name of the path parameter
    "worker": "acmething", "version": "1", "name": "ACMETHING_SECRET", "namespace": "acmething-ns", "key": "acmething-key",
    "queue": "acmething-queue", "tenant": "acme", "cache": "acmething-cache", "token": "",
    "limiter": "acmething-limit", "host": "*acmething-old.localhost", "bucket": "acmething-bucket",
    "rule": "acmething-rule", "credential": "", "class_name": "AcmethingClass", "object_id": "",
    "database": "acmething-db",
    "alias": "acmething-next", "store": "acmething-store", "secret": "ACMETHING_KEY",
    "dataset": "acmething_data", "certificate": "acmething-certificate",
    "asset": "acmething.js", "page": "workers/acmething", "workflow": "acmething-flow", "instance": "acmething-1", "pid": "1", "isolate": "1",
}  # fmt: skip
NOBODYS = {
    "worker": "nobodysx", "version": "9", "name": "NOBODYSX_SECRET", "namespace": "nobodysx-ns", "key": "nobodysx-key",
    "queue": "nobodysx-queue", "tenant": "noby", "cache": "nobodysx-cache", "token": "nobodysx0000",
    "limiter": "nobodysx-limit", "host": "*nobodysx-old.localhost", "bucket": "nobodysx-bucket",
    "rule": "nobodysx-rule", "credential": "nobodysx0000", "class_name": "NobodysxClass", "object_id": "0" * 64,
    "database": "nobodysx-db",
    "alias": "nobodysx-next", "store": "nobodysx-store", "secret": "NOBODYSX_KEY",
    "dataset": "nobodysx_data", "certificate": "nobodysx-certificate",
    "asset": "nobodysx.js", "page": "workers/nobodysx", "workflow": "nobodysx-flow", "instance": "nobodysx-1", "pid": "2", "isolate": "2",
}  # fmt: skip

# Bodies for endpoints that need one: well-formed and harmful.
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/api/workers"): {"name": "acmething", "script": SCRIPT},
    ("PUT", "/api/workers/{worker}"): {"script": "export default { fetch() {} }"},
    ("POST", "/api/playground/run"): {"script": "export default { fetch(request, env) { return Response.json(env) } }"},
    ("POST", "/api/workers/{worker}/versions"): {"script": "export default { fetch() {} }"},
    ("POST", "/api/workers/{worker}/deployments"): {"versions": [{"version": 1, "percentage": 100}], "force": True},
    ("POST", "/api/workers/{worker}/rollback"): {"version": 1, "force": True},
    ("PUT", "/api/workers/{worker}/secrets/{name}"): {"value": "stolen"},
    ("POST", "/api/workers/{worker}/versions/{version}/secrets"): {"secrets": {"ACMETHING_SECRET": "stolen"}},
    ("POST", "/api/workers/{worker}/crons/run"): {},
    ("POST", "/api/assets/manifests"): {"files": {"/stolen": {"hash": "0" * 64, "size": 1}}},
    ("PUT", "/api/assets/files"): "stolen",
    ("POST", "/api/tokens"): {"name": "mine", "scopes": ["read"]},
    ("POST", "/api/tenants"): {"name": "third"},
    ("PATCH", "/api/tenants/{tenant}"): {"quotas": {"workers": 0}},
    ("POST", "/api/session"): {"token": "acmething"},
    ("POST", "/api/kv"): {"name": "globex-ns"},
    ("PUT", "/api/kv/{namespace}/values/{key}"): "stolen",
    ("POST", "/api/kv/{namespace}/bulk"): [{"key": "a", "value": "stolen"}],
    ("POST", "/api/kv/{namespace}/bulk/delete"): ["acmething-key"],
    ("POST", "/api/d1"): {"name": "globex-db"},
    ("POST", "/api/d1/{database}/query"): {"sql": "CREATE TABLE stolen (v)"},
    ("POST", "/api/d1/{database}/raw"): {"sql": "SELECT * FROM sqlite_master"},
    ("POST", "/api/d1/{database}/read"): {"sql": "SELECT * FROM sqlite_master"},
    ("POST", "/api/d1/{database}/export"): {},
    ("POST", "/api/d1/{database}/import"): "CREATE TABLE stolen (v);",
    ("PUT", "/api/objects/{worker}/{class_name}/{object_id}/alarm"): {},
    ("POST", "/api/objects/{worker}/{class_name}/{object_id}/query"): {"sql": "SELECT * FROM sqlite_master"},
    ("POST", "/api/objects/{worker}/{class_name}/{object_id}/execute"): {"sql": "CREATE TABLE stolen (v)"},
    ("POST", "/api/hyperdrive"): {"name": "globex-pg", "connection_string": "postgres://a:b@203.0.113.1:5432/c"},
    ("PUT", "/api/hyperdrive/{database}"): {"connection_string": "postgres://stolen:b@203.0.113.1:5432/c"},
    ("POST", "/api/mtls-certificates"): {"name": "globex-certificate", "certificate": "", "private_key": ""},
    ("POST", "/api/analytics_engine/sql"): "SHOW TABLES",
    ("POST", "/api/secrets-stores"): {"name": "globex-store"},
    ("PUT", "/api/secrets-stores/{store}/secrets/{secret}"): {"value": "stolen"},
    ("POST", "/api/r2"): {"name": "globex-bucket"},
    ("PUT", "/api/r2/{bucket}/objects/{key}"): "stolen",
    ("PUT", "/api/r2/{bucket}/uploads/{key}"): "stolen",
    ("POST", "/api/r2/{bucket}/delete"): ["acmething-key"],
    ("POST", "/api/r2/{bucket}/complete/{key}"): {"upload_id": "x", "parts": []},
    ("PUT", "/api/r2/{bucket}/cors"): {"rules": [{"allowed_origins": ["*"], "allowed_methods": ["GET"]}]},
    ("PUT", "/api/r2/{bucket}/lifecycle"): {"rules": [{"id": "stolen", "expire_days": 1}]},
    ("POST", "/api/r2/{bucket}/lifecycle"): {"id": "stolen", "expire_days": 1},
    ("POST", "/api/r2/{bucket}/notifications"): {"queue": "globex-queue", "event_types": ["object-create"]},
    ("POST", "/api/workers/{worker}/email"): "Subject: stolen",
    ("POST", "/cdn-cgi/handler/email"): "Subject: stolen",
    ("POST", "/api/r2-credentials"): {"name": "globex"},
    ("POST", "/api/workflows/{workflow}/instances"): {"id": "acmething-2"},
    ("POST", "/api/workflows/{workflow}/instances/{instance}/restart"): {},
    ("POST", "/api/workflows/{workflow}/instances/{instance}/events"): {"type": "stolen"},
    ("POST", "/api/queues"): {"name": "globex-queue"},
    ("PATCH", "/api/queues/{queue}"): {"retention_seconds": 60},
    ("POST", "/api/queues/{queue}/messages"): {"messages": [{"body": "stolen"}]},
    ("PUT", "/api/queues/{queue}/pull"): {},
    ("POST", "/api/queues/{queue}/move"): {"to": "globex-queue"},
}
# Answers to a stranger where no resource is named: the statuses. None may contain a word of Acme's.
UNNAMED: dict[tuple[str, str], tuple[int, ...]] = {
    ("POST", "/api/workers"): (409,),  # names are hosts, so they are unique on the node
    ("PUT", "/api/assets/files"): (400,),  # it is no upload
    ("POST", "/api/mtls-certificates"): (400,),  # it is none
    ("POST", "/api/session"): (403,),  # not a browser
    ("DELETE", "/api/session"): (204,),  # there is none
    ("GET", "/dashboard"): (307,),
    ("GET", "/api/routes/match"): (400,),
    ("GET", "/api/node/series"): (403,),
    ("GET", "/api/node/engines"): (403,),
    ("GET", "/api/node/engines/live"): (403,),
    ("GET", "/api/node/health"): (403,),
    ("GET", "/api/nodes"): (403,),
    ("POST", "/api/tenants"): (403,),
    ("GET", "/api/tenants"): (403,),
    ("GET", "/admin/pool"): (403,),
    ("GET", "/metrics"): (403,),
    ("GET", "/certificates/allowed"): (404,),  # it names no host
    ("GET", "/api/backup"): (403,),
    ("GET", "/api/damage"): (403,),
    ("GET", "/api/config"): (403,),
    ("POST", "/api/secrets/rotate-key"): (403,),
    ("GET", "/cdn-cgi/handler/scheduled"): (404, 400),
    ("POST", "/cdn-cgi/handler/email"): (404, 400),
}

DASHBOARD = "/dashboard/{page}"


class Tenant:
    def __init__(self, atoll: Atoll, name: str) -> None:
        self.atoll, self.name = atoll, name
        host = f"localhost:{atoll.port}"
        headers = {"Content-Type": "application/json", "X-Atoll-Tenant": name}
        body = json.dumps({"name": "ops", "scopes": ["admin"]})
        made = atoll.request("POST", host, "/api/tokens", body, headers).json
        self.token, self.token_id = made["token"], made["id"]

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        headers = {"Authorization": f"Bearer {self.token}"}
        content = None
        if body is not None:
            headers["Content-Type"] = "application/octet-stream" if isinstance(body, str) else "application/json"
            content = body if isinstance(body, str) else json.dumps(body)
        return self.atoll.request(method, f"localhost:{self.atoll.port}", path, content, headers)

    def made(self, method: str, path: str, body: Any) -> None:
        answer = self.ask(method, path, body)
        assert answer.status < 300, answer.text


@pytest.fixture(scope="module")
def atoll(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("isolation"), engines=1)
    node.start()
    for name in ("acme", "globex"):
        assert node.control("POST", "/api/tenants", {"name": name}).status == 201
    yield node
    node.stop()


@pytest.fixture(scope="module")
def acme(atoll: Atoll) -> Tenant:
    tenant = Tenant(atoll, "acme")
    MINE["token"] = tenant.token_id
    fields = {
        "name": "acmething", "script": SCRIPT, "env": {"ACMETHING_VAR": "acmething"}, "crons": ["0 0 1 1 *"],
        "routes": ["acmething.example/*"], "migrations": [{"tag": "v1", "new_sqlite_classes": ["AcmethingClass"]}],
        "workflows": [{"name": "acmething-flow", "class_name": "AcmethingFlow"}],
        "bindings": [{"type": "kv", "name": "KV", "namespace": "acmething-ns"},
                     {"type": "r2", "name": "R2", "bucket": "acmething-bucket"},
                     {"type": "d1", "name": "DB", "database": "acmething-db"},
                     {"type": "analytics_engine", "name": "AE", "dataset": "acmething_data"},
                     {"type": "queue", "name": "Q", "queue": "acmething-queue"},
                     {"type": "durable_object", "name": "DO", "class_name": "AcmethingClass"},
                     {"type": "ratelimit", "name": "RL", "namespace": "acmething-limit", "limit": 9, "period": 60}],
    }  # fmt: skip
    tenant.made("POST", "/api/workers", fields)
    address = "postgres://acmething:b@203.0.113.1:5432/c"
    tenant.made("POST", "/api/hyperdrive", {"name": "acmething-db", "connection_string": address})
    tenant.made("POST", "/api/secrets-stores", {"name": "acmething-store"})
    tenant.made("PUT", "/api/secrets-stores/acmething-store/secrets/ACMETHING_KEY", {"value": "acmething"})
    tenant.made("POST", "/api/workers", {"name": "acmething-old", "script": SCRIPT})
    tenant.made("DELETE", "/api/workers/acmething-old", None)
    tenant.made("POST", "/api/workers/acmething/versions?alias=acmething-next", {"env": {"ACMETHING_VAR": "next"}})
    tenant.made("PUT", "/api/workers/acmething/secrets/ACMETHING_SECRET", {"value": "acmething"})
    tenant.made("PUT", "/api/kv/acmething-ns/values/acmething-key", "acmething")
    tenant.made("PUT", "/api/r2/acmething-bucket/objects/acmething-key", "acmething")
    made = tenant.ask("POST", "/api/r2-credentials", {"name": "acmething"})
    MINE["credential"] = made.json["access_key_id"]
    tenant.made("POST", "/api/queues/acmething-queue/messages", {"messages": [{"body": "acmething"}]})
    tenant.made("POST", "/api/workflows/acmething-flow/instances", {"id": "acmething-1"})
    one = "/api/workflows/acmething-flow/instances/acmething-1"
    Atoll.wait_until(lambda: tenant.ask("GET", one).json["status"] == "waiting", 30)
    assert atoll.get("acmething").text == "ok acmething"
    MINE["object_id"] = atoll.get("acmething", "/object").text
    return tenant


def operations(atoll: Atoll) -> list[tuple[str, str, bool]]:
    """(method, path, takes a body) of all endpoints."""
    paths = atoll.control("GET", "/api/openapi.json").json["paths"]
    return [
        (method.upper(), path, "requestBody" in operation)
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]


def with_names(path: str, names: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: names[found[1]], path)


def without_names(answer: Answer, names: dict[str, str]) -> str:
    text = answer.text
    for name in sorted(filter(None, names.values()), key=len, reverse=True):
        if len(name) > 1:
            text = text.replace(name, "NAME")
    return re.sub(r"`[0-9]`", "`NAME`", text)


def state(tenant: Tenant) -> list[str]:
    """Everything of a tenant that a stranger might have changed."""
    worker = "/api/workers/acmething"
    paths = (
        "/api/workers", f"{worker}/versions", f"{worker}/deployments", f"{worker}/secrets", f"{worker}/crons", "/api/routes", "/api/kv",
        "/api/kv/acmething-ns/keys", "/api/kv/acmething-ns/values/acmething-key", "/api/queues", "/api/tenants/acme",
        "/api/d1", "/api/hyperdrive", "/api/hyperdrive/acmething-db", "/api/secrets-stores", "/api/analytics_engine/datasets", "/api/secrets-stores/acmething-store/secrets", "/api/r2", "/api/r2/acmething-bucket/objects", "/api/r2/acmething-bucket/objects/acmething-key", "/api/r2-credentials",
        "/api/reserved-hosts", "/api/queues/acmething-queue/messages", "/api/caches/acmething-cache", "/api/audit", "/api/objects/acmething/AcmethingClass",
        f"/api/objects/acmething/AcmethingClass/{MINE['object_id']}",
        "/api/workflows", "/api/workflows/acmething-flow/instances", "/api/workflows/acmething-flow/instances/acmething-1",
    )  # fmt: skip
    answers = [tenant.ask("GET", path) for path in paths]
    assert {answer.status for answer in answers} == {200}
    return [answer.text for answer in answers]


def test_no_endpoint_shows_or_changes_resources_of_another_tenant(atoll: Atoll, acme: Tenant) -> None:
    globex = Tenant(atoll, "globex")
    before = state(acme)
    found = operations(atoll)
    assert len(found) > 40
    for method, path, takes_body in found:
        assert not takes_body or (method, path) in BODIES, f"add to BODIES what to send to {method} {path}"
        body = BODIES.get((method, path))
        if "{" in path:
            unknown = set(re.findall(r"\{(\w+)\}", path)) - set(MINE)
            assert not unknown, f"add to MINE and NOBODYS what {unknown} of {path} may be"
            theirs = globex.ask(method, with_names(path, MINE), body)
            nobodys = globex.ask(method, with_names(path, NOBODYS), body)
            allowed = (200,) if path == DASHBOARD else (404, 403, 204)  # one page for every address
            assert theirs.status in allowed, f"{method} {path}: {theirs.status} {theirs.text[:300]}"
            assert theirs.status == nobodys.status, f"{method} {path}"
            assert without_names(theirs, MINE) == without_names(nobodys, NOBODYS), f"{method} {path}"
        else:
            answer = globex.ask(method, path, body)
            allowed = UNNAMED.get((method, path), (200, 201))
            assert answer.status in allowed, f"{method} {path}: {answer.status} {answer.text[:300]}"
            echoed = json.dumps(body) if body is not None else ""
            assert "acmething" not in answer.text or "acmething" in echoed, f"{method} {path}: {answer.text[:300]}"
    assert state(acme) == before
    assert acme.ask("GET", "/api/workers/acmething/logs").json["logs"], "the logs of Acme are there"
    assert atoll.get("acmething").text == "ok acmething"


def test_errors_and_numbers_of_a_tenant_are_in_no_answer_to_another(atoll: Atoll, acme: Tenant) -> None:
    globex = Tenant(atoll, "globex")
    assert atoll.get("acmething", "/boom").status == 500
    paths = {"/api/errors": "errors", "/api/series": "points", "/api/overview": "workers"}
    for path, field in paths.items():
        Atoll.wait_until(lambda path=path, field=field: bool(acme.ask("GET", path).json[field]))
        assert globex.ask("GET", path).json[field] == [], path
    theirs = globex.ask("GET", "/api/errors?worker=acmething")
    nobodys = globex.ask("GET", "/api/errors?worker=nobodysx")
    assert theirs.status == 404 and without_names(theirs, MINE) == without_names(nobodys, NOBODYS)


def test_no_other_tenant_can_switch_pulling_of_a_queue(atoll: Atoll, acme: Tenant) -> None:
    globex = Tenant(atoll, "globex")
    acme.made("POST", "/api/queues", {"name": "acmething-pulled"})
    acme.made("PUT", "/api/queues/acmething-pulled/pull", {})
    assert globex.ask("DELETE", "/api/queues/acmething-pulled/pull").status == 404
    assert acme.ask("GET", "/api/queues/acmething-pulled").json["pulls"] is True


def test_equal_names_of_two_tenants_are_different_resources(atoll: Atoll, acme: Tenant) -> None:
    globex = Tenant(atoll, "globex")
    globex.ask("POST", "/api/kv", {"name": "acmething-ns"})
    assert globex.ask("GET", "/api/kv/acmething-ns/values/acmething-key").status == 404
    globex.made("PUT", "/api/kv/acmething-ns/values/acmething-key", "mine")
    assert acme.ask("GET", "/api/kv/acmething-ns/values/acmething-key").text == "acmething"


def test_without_a_token_only_public_pages_answer(atoll: Atoll, acme: Tenant) -> None:
    for method, path, _ in operations(atoll):
        host = {"Host": f"localhost:{atoll.port}", "X-Forwarded-For": "198.51.100.7"}
        answer = atoll.request(method, host["Host"], with_names(path, MINE), None, host)
        if answer.status != 401:
            public = ("/", "/health", "/healthz", "/readyz", "/api", "/api/openapi.json", "/dashboard", DASHBOARD)
            public = (*public, "/certificates/allowed")
            is_login = (method, path) == ("POST", "/api/session")
            assert is_login or (method == "GET" and (path in public or path == "/dashboard/assets/{asset}"))
            assert "acmething" not in answer.text
