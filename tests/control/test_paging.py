"""Lists of the control API: in pages, each entry once, bounded in number and in bytes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from control_plane import HELLO, Node

from atoll.control.index import Index, sorted_after


async def follow(node: Node, path: str, field: str, limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = (await node.ask("GET", f"{path}?limit={limit}{cursor}")).json
        assert len(page[field]) <= limit
        found += page[field]
        if "cursor" not in page:
            return found
        assert page[field], "a page before the last is not empty"
        cursor = f"&cursor={page['cursor']}"


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
async def test_every_entry_is_on_one_page(node: Node, limit: int) -> None:
    for number in range(7):
        routes = [f"{number}-{i}.example/*" for i in range(number)]
        assert (await node.post(name=f"w{number}", script=HELLO, routes=routes)).status == 201
        assert (await node.put("w0", script=HELLO, message=str(number))).status == 200
        assert (await node.ask("POST", "/api/tenants", {"name": f"t{number}"})).status == 201
        assert (await node.ask("POST", "/api/tokens", {"name": f"n{number}", "scopes": ["read"]})).status == 201
        assert (await node.ask("PUT", f"/api/workers/w1/secrets/S{number}", {"value": "x"})).status in (200, 404)
    workers = await follow(node, "/api/workers", "workers", limit)
    assert [worker["name"] for worker in workers] == [f"w{number}" for number in range(7)]
    tenants = [tenant["name"] for tenant in await follow(node, "/api/tenants", "tenants", limit)]
    assert tenants == sorted([*(f"t{number}" for number in range(7)), "default"])
    tokens = [token["name"] for token in await follow(node, "/api/tokens", "tokens", limit)]
    assert [name for name in tokens if name.startswith("n")] and len(tokens) == len(set(tokens))
    versions = [version["number"] for version in await follow(node, "/api/workers/w0/versions", "versions", limit)]
    assert versions == list(range(8, 0, -1))
    secrets = [secret["name"] for secret in await follow(node, "/api/workers/w1/secrets", "secrets", limit)]
    assert secrets == [f"S{number}" for number in range(1, 7)]
    routes = [(route["worker"], route["pattern"]) for route in await follow(node, "/api/routes", "routes", limit)]
    assert len(routes) == len(set(routes)) == 7 + sum(range(7))
    assert routes == [
        (f"w{number}", pattern)
        for number in range(7)
        for pattern in [f"w{number}.localhost/*", *(f"{number}-{i}.example/*" for i in range(number))]
    ]


async def test_the_size_of_a_page_is_bounded(node: Node) -> None:
    for number in range(5):
        await node.post(name=f"w{number}", script=HELLO, env={f"V{i}": "x" * 5_000 for i in range(64)})
    answer = await node.ask("GET", "/api/workers")
    assert (len(answer.json["workers"]), answer.json["cursor"]) == (4, "w3")
    assert [worker["name"] for worker in await follow(node, "/api/workers", "workers", 100)][-1] == "w4"


@pytest.mark.parametrize("path", ["workers", "routes", "tenants", "tokens", "kv", "caches", "audit"])
@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=-1", "limit=1e3", "limit=%D9%A3", "limit="])
async def test_an_invalid_limit_is_refused(node: Node, path: str, query: str) -> None:
    answer = await node.ask("GET", f"/api/{path}?{query}")
    assert answer.status in (400, 404)  # some endpoints belong to bindings that these tests leave out
    assert answer.status == 404 or answer.json["error"]["type"] == "bad_body"


async def test_deleting_a_worker_does_not_break_paging(node: Node) -> None:
    for name in ("a", "b", "c"):
        await node.post(name=name, script=HELLO)
    page = (await node.ask("GET", "/api/workers?limit=2")).json
    await node.ask("DELETE", "/api/workers/b")
    rest = (await node.ask("GET", f"/api/workers?limit=2&cursor={page['cursor']}")).json
    assert [worker["name"] for worker in rest["workers"]] == ["c"] and "cursor" not in rest


def test_names_added_during_paging_appear_once() -> None:
    index = Index()
    for name in "abcdef":
        index.add("t", name)
    listed = []
    for name in sorted_after(index.under("t"), ""):
        listed.append(name)
        index.drop("t", name)
        index.add("t", f"{name}-later")
        if len(listed) > 20:
            break
    assert listed[:2] == ["a", "a-later"]  # each new name is behind the last one
    assert len(listed) == len(set(listed))


async def test_every_list_endpoint_accepts_limit_and_cursor(node: Node) -> None:
    fixed = {"/api/config"}  # one entry per setting
    for route in node.api.routes:
        if route.method != "GET" or route.gives is None or route.path in fixed or not _is_list(route.gives):
            continue
        assert {"limit", "cursor"} <= {query.name for query in route.query}, route.path
        assert "cursor" in route.gives.__struct_fields__, route.path


def _is_list(shape: Any) -> bool:
    """True for the answer of a list: its first field is a list of structs."""
    if not (isinstance(shape, type) and issubclass(shape, msgspec.Struct)):
        return False
    kind = msgspec.structs.fields(shape)[0].type
    return getattr(kind, "__origin__", None) is list
