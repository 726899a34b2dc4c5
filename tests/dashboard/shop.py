"""Example workers for the pictures of the dashboard: a shop with a history, a split, secrets and crons."""

from __future__ import annotations

import json
from typing import Any

from tests.running import Atoll

SHOP = """export default { async fetch(request, env) {
  const { pathname } = new URL(request.url);
  if (pathname === "/basket/checkout") {
    console.warn("no stock for", "tea-42");
    throw new TypeError("item.price is undefined");
  }
  if (pathname === "/slow") { console.log("asked 3 suppliers"); return new Response("late"); }
  console.log("served", pathname);
  return new Response("Hello from " + (env.CITY ?? "the shop"));
}, scheduled() {} }"""
PLAIN = "export default { fetch() { return new Response('ok') }, queue() {} }"
WORKERS = {"shop": 60, "images": 22, "login": 9, "mailer": 3, "search": 35, "webhooks": 1}  # calls in a second


def deploy(node: Atoll) -> dict[str, dict[str, Any]]:
    """The example workers; the shop with a history, a split, secrets and crons."""
    made = {name: node.deploy(name, PLAIN, message="First version") for name in WORKERS if name != "shop"}
    shop: dict[str, Any] = {
        "routes": ["shop.example/*", "www.shop.example/*"],
        "crons": ["*/15 * * * *"],
        "env": {"CITY": "Porto"},
        "bindings": [
            {"type": "service", "name": "SEARCH", "service": "search"},
            {"type": "kv", "name": "CARTS", "namespace": "carts"},
        ],
    }
    node.deploy("shop", SHOP, **shop, message="First version")
    node.control("PUT", "/api/workers/shop/secrets/STRIPE_KEY", {"value": "sk_example"})
    node.deploy("shop", SHOP.replace("late", "late, sorry"), **shop, message="Say sorry when late")
    shop["env"]["CITY"] = "Lisbon"
    node.deploy("shop", SHOP.replace("served", "answered"), **shop, message="Move to Lisbon")
    shares = [{"version": 4, "percentage": 25}, {"version": 3, "percentage": 75}]
    answer = node.control("POST", "/api/workers/shop/deployments", {"versions": shares, "message": "A quarter first"})
    assert answer.status == 201, answer.text
    made["shop"] = node.control("GET", "/api/workers/shop").json
    return made


LOADS = {
    "portal": ("acme", 3_000_000, 60_000),
    "reports": ("acme", 40_000, 200_000),
    "forms": ("globex", 9_000, 120_000),
    "feeds": ("globex", 200_000, 30_000),
}
BUSY = """const kept = Array.from({ length: SIZE }, (_, place) => ({ place }));
export default { fetch() { let sum = kept.length; for (let i = 0; i < TURNS; i++) sum += i % 7; return new Response(String(sum)); } }"""


def deploy_for_others(node: Atoll) -> None:
    """Workers of two more tenants: how much CPU time and memory they take differs."""
    for tenant, quotas in (("acme", {"workers": 3, "kv_keys": 10_000}), ("globex", {"workers": 20})):
        assert node.control("POST", "/api/tenants", {"name": tenant, "quotas": quotas}).status == 201
    for name, (tenant, turns, size) in LOADS.items():
        script = BUSY.replace("SIZE", str(size)).replace("TURNS", str(turns))
        headers = {"Content-Type": "application/json", "X-Atoll-Tenant": tenant}
        body = json.dumps({"name": name, "script": script, "limits": {"cpu_ms": 500}})
        assert node.request("POST", node.control_host, "/api/workers", body, headers).status == 201


TEAS = ["sencha", "oolong", "assam", "rooibos", "genmaicha", "darjeeling", "pu-erh", "hibiscus", "lapsang", "chai"]


def fill_stores(node: Atoll) -> None:
    """What the shop keeps: carts, a catalogue, photos, mails that wait."""

    def post(path: str, body: Any) -> None:
        answer = node.control("POST", path, body)
        assert answer.status in (200, 201), answer.text

    carts = [
        {"key": f"cart/{1000 + n}", "value": f'{{"customer": {n}, "items": [{{"tea": "{TEAS[n % 10]}", "grams": {50 + n}}}]}}',
         "expiration_ttl": 3_600 * (n + 2), "metadata": {"items": 1 + n % 3}}
        for n in range(24)
    ]  # fmt: skip
    post("/api/kv/carts/bulk", carts)
    post("/api/d1", {"name": "shop"})
    rows = ", ".join(
        f"('{tea}', {8 + n * 1.5}, {40 - 3 * n}, {'NULL' if n % 4 else repr(f'2026-1{n % 3}-0{n % 9 + 1}')})"
        for n, tea in enumerate(TEAS)
    )
    post(
        "/api/d1/shop/query",
        {
            "sql": f"CREATE TABLE teas (id INTEGER PRIMARY KEY, name TEXT, price REAL, stock INTEGER, sold_out TEXT); INSERT INTO teas (name, price, stock, sold_out) VALUES {rows}"
        },
    )
    post("/api/r2", {"name": "photos"})
    for tea in TEAS:
        path = f"/api/r2/photos/objects/teas%2F{tea}.txt"
        node.request("PUT", node.control_host, path, f"{tea}: a tea\n".encode(), {"Content-Type": "text/plain"})
    node.request(
        "PUT",
        node.control_host,
        "/api/r2/photos/objects/robots.txt",
        b"User-agent: *\n",
        {"Content-Type": "text/plain"},
    )
    for queue in ("mails", "invoices", "mails-dead"):
        post("/api/queues", {"name": queue})
    mails = [{"body": {"to": f"{tea}@shop.example", "about": f"order {n}"}} for n, tea in enumerate(TEAS)]
    post("/api/queues/mails/messages", {"messages": mails})
