"""Example workers for the pictures of the dashboard: a shop with a history, a split, secrets and crons."""

from __future__ import annotations

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
