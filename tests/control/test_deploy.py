"""A deploy is all or nothing: concurrent, interrupted or killed at any step, a worker is either old or new."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from control_plane import HELLO, Engines, Node

from atoll.api.refusals import ApiCode, Refused
from atoll.config import Settings
from atoll.control.checks.body import DeployBody
from atoll.control.store.workers import KEPT_VERSIONS

Start = Callable[..., Any]


def body(**fields: Any) -> DeployBody:
    return DeployBody(**fields)


async def test_workers_survive_a_restart(start: Start) -> None:
    async with start() as node:
        modules = {"main.js": "import './b.json'", "b.json": "{}"}
        given = await node.post(
            name="one", modules=modules, main="main.js", env={"A": [1]}, routes=["a.example/x*"], limits={"cpu_ms": 9}
        )
        await node.post(name="two", script=HELLO)
        await node.put("two", script=HELLO + "//2")
        before = (await node.ask("GET", "/api/workers")).json
    async with start() as node:
        assert (await node.ask("GET", "/api/workers")).json == before
        assert before["workers"][0] == given.json
        one, two = node.live("a.example", "/x/y"), node.live("two.localhost:99")
        assert one is not None and one.limits.cpu_ms == 9 and one.env == {"A": [1]} and one.stored_bytes == 19
        assert two is not None and (await node.store.read_code(two))[0].source.endswith(b"//2")


async def test_a_restarted_node_keeps_no_code_in_memory_and_deploys_changes_that_bring_none(start: Start) -> None:
    async with start() as node:
        await node.post(name="hello", script=HELLO + "//kept")
        used = await node.deployer.usage("default")
    async with start() as node:
        version = node.live("hello.localhost")
        assert version is not None and version.modules == () and version.stored_bytes == len(HELLO + "//kept")
        assert await node.deployer.usage("default") == used
        await node.put("hello", env={"A": 1})
        changed = node.live("hello.localhost")
        assert changed is not None and changed is not version and changed.env == {"A": 1}
        assert changed.modules[0].source == (HELLO + "//kept").encode()
        assert (await node.store.read_code(changed))[0].source == (HELLO + "//kept").encode()
        assert await node.deployer.usage("default") == used


class Killed(BaseException):
    """Simulates the end of the process."""


@pytest.mark.parametrize("step", ["check", "store", "commit", "switch"])
@pytest.mark.parametrize("act", ["create", "update"])
async def test_a_crash_at_any_step_leaves_old_or_new(
    start: Start, monkeypatch: pytest.MonkeyPatch, step: str, act: str
) -> None:
    new = HELLO + "//new"

    def die(*_: Any) -> None:
        raise Killed

    async def die_soon(*_: Any, **more: Any) -> None:
        raise Killed

    async with start() as node:
        if act == "update":
            await node.post(name="hello", script=HELLO, env={"SIDE": "old"}, routes=["old.example/*"])
        save = "create" if act == "create" else "update"
        saved = getattr(node.store, save)

        async def save_then_die(deployment: Any, mark: Any, **more: Any) -> None:
            await saved(deployment, mark, **more)
            raise Killed

        if step == "check":
            monkeypatch.setattr(node.engines, "check", die_soon)
        if step == "store":
            monkeypatch.setattr(node.store, save, die_soon)
        if step == "commit":
            monkeypatch.setattr(node.store, save, save_then_die)
        if step == "switch":
            monkeypatch.setattr(node.router, "put", die)
        fields = body(script=new, env={"SIDE": "new"}, routes=["new.example/*"])
        deploy = (
            node.deployer.create(body(name="hello", script=new, env={"SIDE": "new"}, routes=["new.example/*"]))
            if act == "create"
            else node.deployer.update("hello", fields)
        )
        before = node.live("hello.localhost")
        with pytest.raises(Killed):
            await asyncio.gather(deploy)
        assert node.live("hello.localhost") is before and node.live("new.example") is None
    monkeypatch.undo()

    is_new = step in ("commit", "switch")
    async with start() as node:
        version = node.live("hello.localhost")
        if not is_new and act == "create":
            assert version is None and node.deployer.all() == []
            return
        assert version is not None
        assert version.env == {"SIDE": "new" if is_new else "old"}
        assert ((await node.store.read_code(version))[0].source == new.encode()) is is_new
        assert (node.live("new.example") is version) is is_new
        assert (node.live("old.example") is version) is not is_new


async def test_a_refused_update_changes_nothing(node: Node, engines: Engines) -> None:
    await node.post(name="hello", script=HELLO, routes=["a.example/*"])
    before = (await node.ask("GET", "/api/workers/hello")).json, node.live("a.example")
    engines.failure = Refused(ApiCode.VALIDATION, "no")
    assert (await node.put("hello", script="throw 1", routes=["b.example/*"])).status == 422
    assert ((await node.ask("GET", "/api/workers/hello")).json, node.live("a.example")) == before
    assert node.live("b.example") is None and engines.retired == []


async def test_the_old_version_is_retired_after_the_switch(node: Node, engines: Engines) -> None:
    await node.post(name="hello", script=HELLO)
    old = node.live("hello.localhost")
    await node.put("hello", script=HELLO)
    assert engines.retired == [old] and node.live("hello.localhost") is not old


async def test_a_version_that_could_not_be_stored_is_unloaded(
    node: Node, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(node.store, "create", full)
    assert (await node.post(name="hello", script=HELLO)).status == 500
    assert engines.retired == engines.checked != []
    monkeypatch.undo()
    assert (await node.post(name="hello", script=HELLO)).status == 201


async def test_fifty_concurrent_deploys_all_succeed(start: Start) -> None:
    async with start() as node:
        answers = await asyncio.gather(
            *(node.post(name=f"w{i}", script=HELLO, routes=[f"{i}.example"]) for i in range(50))
        )
        assert {answer.status for answer in answers} == {201}
        assert len({answer.json["id"] for answer in answers}) == 50
    async with start() as node:
        assert all(node.live(f"w{i}.localhost") is node.live(f"{i}.example") is not None for i in range(50))


async def test_fifty_concurrent_deploys_of_one_worker_are_serialized(node: Node, engines: Engines) -> None:
    await node.post(name="hello", script=HELLO)
    engines.gate = asyncio.Event()
    deploys = [asyncio.ensure_future(node.put("hello", script=f"{HELLO}//{i}")) for i in range(50)]
    await engines.until_checked(2)
    assert (await node.ask("DELETE", "/api/workers/hello")).code == ApiCode.CONCURRENT
    engines.gate.set()
    answers = await asyncio.gather(*deploys)
    assert sorted(answer.status for answer in answers) == [200] + [409] * 49
    assert {answer.code for answer in answers if answer.status == 409} == {ApiCode.CONCURRENT}
    [stored] = node.store.load_all()
    live = node.live("hello.localhost")
    assert live is not None and stored.version.id == live.id and stored.number == 2


async def test_two_new_workers_cannot_both_get_the_same_host(node: Node, engines: Engines) -> None:
    engines.gate = asyncio.Event()
    one = asyncio.ensure_future(node.post(name="one", script=HELLO))
    two = asyncio.ensure_future(node.post(name="two", script=HELLO, routes=["one.localhost/*"]))
    await engines.until_checked(2)
    engines.gate.set()
    assert sorted([(await one).status, (await two).status]) == [201, 409]
    assert len(node.store.load_all()) == 1


async def test_a_change_completes_when_its_client_disconnects(node: Node, engines: Engines) -> None:
    engines.gate = asyncio.Event()
    deploy = asyncio.ensure_future(node.post(name="hello", script=HELLO))
    await engines.until_checked(1)
    deploy.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deploy
    engines.gate.set()
    await node.deployer.close()
    assert node.live("hello.localhost") is engines.checked[0]
    assert [stored.name for stored in node.store.load_all()] == ["hello"]


async def test_only_the_newest_versions_are_kept(node: Node) -> None:
    await node.post(name="hello", script=HELLO)
    for i in range(KEPT_VERSIONS + 5):
        await node.put("hello", env={"I": i})
    numbers = node.database.read(lambda c: [row[0] for row in c.execute("SELECT number FROM versions ORDER BY number")])
    assert numbers == list(range(7, KEPT_VERSIONS + 7))
    modules = node.database.read(lambda c: c.execute("SELECT count(*) FROM modules").fetchall())
    assert modules == [(KEPT_VERSIONS,)]


async def test_limits_follow_a_lowered_cap(start: Start, settings: Settings) -> None:
    async with start() as node:
        await node.post(name="hello", script=HELLO, limits={"memory_mb": 512})
    async with start(replace(settings, max_memory_mb=256)) as node:
        live = node.live("hello.localhost")
        assert live is not None and live.limits.memory_mb == 256


async def test_a_route_that_became_a_control_host_does_not_stop_the_start(
    start: Start, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with start() as node:
        await node.post(name="hello", script=HELLO, routes=["new.example/*", "b.example/*"])
    async with start(replace(settings, control_hosts=("new.example",))) as node:
        assert node.live("hello.localhost") is not None and node.live("b.example") is None
        assert (await node.ask("GET", "/api/workers/hello")).json["routes"] == ["new.example/*", "b.example/*"]
    assert "the routes of the worker" in caplog.text


async def test_code_caches_belong_to_one_version_and_one_v8(node: Node) -> None:
    await node.post(name="hello", modules={"a.js": "", "b.json": "{}", "c.js": ""}, main="a.js")
    version = node.live("hello.localhost")
    assert version is not None
    assert node.store.load_code(version, "13.6") is None
    node.store.save_code(version, "13.6", (b"code of a", b"", b"code of c"))
    await written(node)
    assert node.store.load_code(version, "13.6") == (b"code of a", b"", b"code of c")
    assert node.store.load_code(version, "13.7") is None
    node.store.save_code(version, "13.7", (b"newer", b"", b""))
    await written(node)
    assert node.store.load_code(version, "13.6") is None
    await node.put("hello", env={})
    assert node.store.load_code(version, "13.7") is None
    await node.ask("DELETE", "/api/workers/hello")
    node.store.save_code(version, "13.7", (b"late", b"", b""))
    await written(node)
    assert node.store.load_code(version, "13.7") is None


async def written(node: Node) -> None:
    """Writes happen in order: when this one is done, all earlier ones are."""
    await node.database.write(lambda _: None)
