"""Bindings of the program that embeds a node: Python ops and a JavaScript half."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from atoll import ApiRefused, Atoll, HostBinding, OpCall, Reply, op
from atoll.errors import InvalidArgument, StartError

ROOT = Path(__file__).resolve().parents[2]

WORKER = """export default { async fetch(request, env) {
  const item = new URL(request.url).searchParams.get("item");
  try {
    return Response.json(await env.STOCK.count(item));
  } catch (error) {
    return new Response(`${error}`, { status: 400 });
  }
} };"""
ENTRY = {"type": "inventory", "name": "STOCK"}


class Inventory(HostBinding):
    kind = "inventory"
    javascript = """
        const count = defineOp("inventory.count");
        defineBinding("inventory", class Inventory {
          #name;
          constructor(name) { this.#name = name; }
          async count(item) { return (await count({ binding: this.#name, item })).meta; }
        });
    """

    def __init__(self, **stock: int) -> None:
        self.stock = stock
        self.closed = False

    @op("inventory.count")
    async def count(self, call: OpCall) -> Reply:
        item = call.meta.get("item")
        if not isinstance(item, str):
            raise InvalidArgument("an item is a string")
        await asyncio.sleep(0)
        return Reply({"tenant": call.scope.version.tenant, "count": self.stock.get(item, 0)})

    async def close(self) -> None:
        self.closed = True


async def test_a_worker_calls_python_of_the_host_program() -> None:
    inventory = Inventory(apples=3)
    async with Atoll(bindings=[inventory]) as atoll:
        worker = await atoll.deploy("shop", WORKER, bindings=[ENTRY])
        assert (await worker.fetch("/?item=apples")).json() == {"tenant": "default", "count": 3}
        inventory.stock["apples"] = 2
        assert (await worker.fetch("/?item=apples")).json()["count"] == 2
        refused = await worker.fetch("/")
        assert refused.status == 400 and "an item is a string" in refused.text
    assert inventory.closed


async def test_a_worker_without_the_binding_does_not_reach_it() -> None:
    async with Atoll(bindings=[Inventory(apples=3)]) as atoll:
        worker = await atoll.deploy("shop", WORKER)
        assert "Cannot read properties of undefined" in (await worker.fetch("/?item=apples")).text


async def test_a_node_without_the_binding_refuses_the_deploy() -> None:
    async with Atoll() as atoll:
        with pytest.raises(ApiRefused, match="has the type 'inventory'"):
            await atoll.deploy("shop", WORKER, bindings=[ENTRY])


async def test_nodes_with_and_without_the_binding_have_different_snapshots(tmp_path: Path) -> None:
    async with Atoll(tmp_path, bindings=[Inventory(apples=3)]) as atoll:
        await atoll.deploy("plain", "export default { fetch() { return new Response('plain'); } }")
    async with Atoll(tmp_path) as atoll:
        assert (await atoll.fetch("http://plain.localhost/")).text == "plain"


async def test_a_node_without_the_binding_of_a_stored_worker_reports_it_and_keeps_the_worker(tmp_path: Path) -> None:
    async with Atoll(tmp_path, bindings=[Inventory(apples=3)]) as atoll:
        await atoll.deploy("shop", WORKER, bindings=[ENTRY])
    with pytest.raises(StartError, match=r"the worker `shop` cannot be restored: .*inventory") as caught:
        async with Atoll(tmp_path):
            pass
    assert "start the node with the bindings that it had" in caught.value.hint
    async with Atoll(tmp_path, bindings=[Inventory(apples=3)]) as atoll:
        assert (await atoll.fetch("http://shop.localhost/?item=apples")).json()["count"] == 3


@pytest.mark.parametrize(("kind", "text"), [("kv", "two bindings of the kind `kv`"), ("No", "has the kind 'No'")])
def test_an_invalid_kind_is_refused(kind: str, text: str) -> None:
    wrong = type("Wrong", (Inventory,), {"kind": kind})
    with pytest.raises(StartError, match=text):
        Atoll(bindings=[wrong()])


async def test_javascript_may_contain_non_ascii_characters() -> None:
    class Sign(HostBinding):
        kind = "sign"
        javascript = "defineBinding('sign', class { get text() { return 'é € 😀'; } }); // ö"

    async with Atoll(bindings=[Sign()]) as atoll:
        script = "export default { fetch(request, env) { return new Response(env.SIGN.text); } }"
        worker = await atoll.deploy("sign", script, bindings=[{"type": "sign", "name": "SIGN"}])
        assert (await worker.fetch()).text == "é € 😀"


async def test_a_syntax_error_in_the_javascript_is_reported() -> None:
    class Broken(HostBinding):
        kind = "broken"
        javascript = "defineBinding("

    with pytest.raises(StartError, match="SyntaxError") as caught:
        async with Atoll(bindings=[Broken()]):
            pass
    assert caught.value.hint == "look at the JavaScript of the host's bindings"


def test_the_example_runs() -> None:
    command = [sys.executable, str(ROOT / "examples/host_binding.py")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout == "3 apples left\n2 apples left\n"
