"""A hostile engine holds passes and keys of its own workers, and makes others of them: Python refuses each one."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from atoll.bindings.base import OpCall
from atoll.bindings.durable_object import namespaces as namespaces_module
from atoll.bindings.durable_object.namespaces import ObjectNamespace
from atoll.bindings.durable_object.ops import DurableObjects
from atoll.bindings.passes import MAX_PASS, Passes
from atoll.bindings.rpc.ops import RpcBinding
from atoll.bindings.scope import CallScope
from atoll.bindings.service.target import ServiceTarget, target_of
from atoll.bindings.services import ObjectTarget
from atoll.engine.objects.live_object import LiveObject
from atoll.errors import InvalidArgument
from atoll.objects.store import ObjectKey
from atoll.workers import Grant, Version
from tests.engine.engine_room import EngineRoom, script


class Node:
    """The bindings of a node with two namespaces of one tenant and one of another."""

    def __init__(self, room: EngineRoom) -> None:
        objects, rpc = room.bindings["durable_object"], room.bindings["rpc"]
        assert isinstance(objects, DurableObjects) and isinstance(rpc, RpcBinding)
        self.room, self.objects, self.rpc = room, objects, rpc
        self.passes: Passes = rpc._service.passes
        self.version = script("", name="guest")  # has no bindings to objects or services

    async def start(self) -> None:
        self.mine = await self._namespace("default", "Mine")
        self.other = await self._namespace("default", "Other")
        self.foreign = await self._namespace("stranger", "Mine")
        for tenant in ("default", "stranger"):
            self.room.workers["owner"] = replace(script("", name="owner"), tenant=tenant)
        self.room.workers["owner"] = script("", name="owner")

    async def _namespace(self, tenant: str, name: str) -> ObjectNamespace:
        await self.objects.namespaces.create(tenant, "owner", name, True, "v1")
        found = self.objects.namespaces.find(tenant, "owner", name)
        assert found is not None
        return found

    def key(self, namespace: ObjectNamespace) -> bytes:
        """What an engine has whose worker is bound to the namespace."""
        return bytes.fromhex(self.objects._keys(namespace.tenant, namespace.id, namespace.secret)["pass"][1])

    def use(self, text: object, version: Version | None = None) -> Any:
        """The op of an engine that uses a stub."""
        return self.rpc.reach(OpCall(Grant("", "rpc"), CallScope(version or self.version), {"name": text}))

    def object_of(self, text: str, version: Version | None = None) -> str:
        version = version or self.version
        target, _ = self.objects.passed(version, self.passes.read(version.tenant, text))
        return f"{target.class_name} {target.id} {target.name}"


def object_id(namespace: ObjectNamespace, first: bytes = bytes(16)) -> str:
    return (first + hmac.digest(namespace.key(), first, "sha256")[:16]).hex()


def signed(key: bytes, kind: str, content: object) -> str:
    text = json.dumps(content)
    return f"pass {kind} {hmac.digest(key, text.encode(), 'sha256')[:16].hex()} {text}"


@pytest_asyncio.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    room = EngineRoom(tmp_path)
    node = Node(room)
    await node.start()
    yield node
    for binding in room.bindings.values():
        await binding.close()
    room.gate.close()
    await room.database.close()


async def test_a_pass_reaches_its_object(node: Node) -> None:
    id = object_id(node.mine)
    assert node.object_of(signed(node.key(node.mine), "object", [node.mine.id, id, "n"])) == f"Mine {id} n"


async def test_a_pass_without_the_key_is_refused(node: Node) -> None:
    id = object_id(node.mine)
    for key in (b"", bytes(32), node.mine.secret, node.mine.key(), hashlib.sha256(node.mine.id.encode()).digest()):
        with pytest.raises(InvalidArgument, match="not valid"):
            node.use(signed(key, "object", [node.mine.id, id, None]))


async def test_the_holder_of_a_pass_cannot_turn_it_to_another_object(node: Node) -> None:
    mine, other = object_id(node.mine), object_id(node.mine, b"x" * 16)
    text = signed(node.key(node.mine), "object", [node.mine.id, mine, "name"])
    for forged in (text.replace(mine, other), text.replace("name", "game"), text.replace('"name"', "null")):
        assert forged != text
        with pytest.raises(InvalidArgument, match="not valid"):
            node.use(forged)


async def test_the_key_of_one_namespace_opens_no_other(node: Node) -> None:
    for target in (node.other, node.foreign):
        with pytest.raises(InvalidArgument, match="not valid"):
            node.use(signed(node.key(node.mine), "object", [target.id, object_id(target), None]))
    # An id of another namespace under the own one: ids prove their namespace as well.
    with pytest.raises(InvalidArgument, match="ID is not valid"):
        node.use(signed(node.key(node.mine), "object", [node.mine.id, object_id(node.other), None]))


async def test_a_pass_of_another_tenant_is_refused(node: Node) -> None:
    text = signed(node.key(node.foreign), "object", [node.foreign.id, object_id(node.foreign), None])
    stranger = replace(node.version, tenant="stranger")
    with pytest.raises(InvalidArgument, match="not valid"):
        node.use(text)
    assert node.passes.read("stranger", text).content[0] == node.foreign.id
    service = node.passes.of_service("default", ServiceTarget("owner").encode())
    with pytest.raises(InvalidArgument, match="not valid"):
        target_of(stranger, service, node.passes)


async def test_the_key_of_own_exports_opens_neither_other_workers_nor_objects(node: Node) -> None:
    facts = node.objects.own_facts(node.version)
    assert facts is not None
    key = bytes.fromhex(facts["key"])
    own = target_of(node.version, signed(key, "export", ["guest", "Named", {"a": 1}]), node.passes)
    assert own == ServiceTarget("guest", "Named", {"a": 1})
    for forged in (
        signed(key, "export", ["owner", "Named", {}]),
        signed(key, "object", [node.mine.id, object_id(node.mine), None]),
        signed(key, "service", {"service": "owner"}),
        signed(node.key(node.mine), "export", ["guest", None, {}]),
    ):
        with pytest.raises(InvalidArgument, match="not valid"):
            node.use(forged)


async def test_the_pass_of_a_service_binding_keeps_its_entry_point_and_props(node: Node) -> None:
    text = node.passes.of_service("default", ServiceTarget("owner", "Named", {"user": "ada"}).encode())
    assert target_of(node.version, text, node.passes) == ServiceTarget("owner", "Named", {"user": "ada"})
    for old, new in (("ada", "bob"), ('"Named"', "null"), ("owner", "other")):
        with pytest.raises(InvalidArgument, match="not valid"):
            node.use(text.replace(old, new))


async def test_a_pass_of_a_deleted_class_is_refused(node: Node) -> None:
    text = signed(node.key(node.mine), "object", [node.mine.id, object_id(node.mine), None])
    node.objects.namespaces.mark_deleted(node.mine)
    with pytest.raises(InvalidArgument, match="was deleted"):
        node.use(text)


async def test_malformed_passes_are_refused(node: Node) -> None:
    key = node.key(node.mine)
    good = signed(key, "object", [node.mine.id, object_id(node.mine), None])
    texts = [
        "pass ", "pass object", "pass object 00 []", f"pass other {'0' * 32} []", f"pass object {'0' * 32} ", good + " ",
        good.upper(), good + "x" * MAX_PASS, f"pass object {'0' * 32} [", f"pass object {'0' * 32} {{}}",
        f"pass object {'0' * 32} [1, 2, 3]", f'pass object {"0" * 32} ["a", "b"]', f"pass object {'0' * 32} " + "[" * 5000,
        f'pass object {"0" * 32} ["\ud800", "b", null]',
        signed(key, "object", [node.mine.id, 5, None]), signed(key, "object", [node.mine.id, object_id(node.mine), 5]),
        signed(key, "object", [node.mine.id, object_id(node.mine), "x" * 20_000]),
    ]  # fmt: skip
    for text in [*texts, None, 5, [], "", "GUEST", "exports "]:
        with pytest.raises(InvalidArgument):
            node.use(text)


# --- facets ---


def facet(**fields: Any) -> str:
    return f"facet {json.dumps({'name': 'a', 'class': 'Child', **fields})}"


async def test_only_an_object_reaches_facets_and_only_its_own(node: Node) -> None:
    with pytest.raises(InvalidArgument, match="only a Durable Object has facets"):
        node.use(facet())  # an ordinary call of a worker
    key = ObjectKey(node.mine.id, object_id(node.mine))
    around = ObjectTarget(*key, "Mine", True)
    node.room.objects.runtime.live[key] = LiveObject(around, node.version, 0.0)
    scope = CallScope(node.version)
    scope.object_key = key
    found = node.objects.facets.target(scope, facet())
    assert found.facet is not None and (found.facet.root, found.facet.path) == (key.id, ("a",))
    assert not node.mine.owns(found.id), "no worker can make the id of a facet"
    other = ObjectKey(node.mine.id, object_id(node.mine, b"y" * 16))
    node.room.objects.runtime.live[other] = LiveObject(ObjectTarget(*other, "Mine", True), node.version, 0.0)
    scope.object_key = other
    assert node.objects.facets.target(scope, facet()).id != found.id
    for text in (
        "facet ", "facet []", "facet {", facet(name="x" * 257), facet(**{"class": "a b"}), facet(root=key.id), facet(path=["x"]),
        facet(name=5), facet(props=[]), facet(id="x" * 5000), "facet " + "[" * 9000, facet(props={"x": "y" * 70_000}),
    ):  # fmt: skip
        with pytest.raises(InvalidArgument):
            node.objects.facets.target(scope, text)


async def test_an_object_cannot_fill_the_node_with_facets(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces_module, "MAX_FACETS", 3)
    key = ObjectKey(node.mine.id, object_id(node.mine))
    node.room.objects.runtime.live[key] = LiveObject(ObjectTarget(*key, "Mine", True), node.version, 0.0)
    scope = CallScope(node.version)
    scope.object_key = key
    for number in range(3):
        node.objects.facets.target(scope, facet(name=f"{number}"))
    with pytest.raises(InvalidArgument, match="Maximum number of facets exceeded"):
        node.objects.facets.target(scope, facet(name="more"))
    assert node.objects.facets.target(scope, facet(name="1")).facet is not None, "those that are there go on"
