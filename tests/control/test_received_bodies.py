"""How the control API receives bodies: bounded, within a time limit, and never from strangers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from control_plane import HELLO, Node
from starlette.requests import ClientDisconnect, Request

from atoll.api import bodies, work
from atoll.api.bodies import receive_body
from atoll.api.callers import LOCAL
from atoll.api.refusals import ApiCode, Refused
from atoll.api.work import CALLER, WORK, Work, offloaded
from atoll.offload.jobs import Job
from atoll.offload.pool import Offload
from atoll.offload.spool import SpoolRoom

MB = 1 << 20


class Client:
    """The other end of a request: gives chunks on demand, then waits or disconnects."""

    def __init__(
        self, folder: Path, *chunks: bytes, headers: dict[str, str] | None = None, tenant_bytes: int = MB
    ) -> None:
        self.work = Work(
            Offload(1, paths=[str(Path(__file__).resolve().parents[2])]), SpoolRoom(folder, tenant_bytes, 2 * MB)
        )
        self.chunks = list(chunks)
        self.asked = 0
        self.left = asyncio.Event()
        lines = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        scope: dict[str, Any] = {"type": "http", "headers": lines, CALLER: LOCAL, WORK: self.work}
        self.request = Request(scope, self.receive)

    async def receive(self) -> dict[str, Any]:
        self.asked += 1
        if self.chunks:
            return {"type": "http.request", "body": self.chunks.pop(0), "more_body": True}
        await self.left.wait()
        return {"type": "http.disconnect"}


async def test_a_body_declared_too_long_is_refused_before_it_is_read(tmp_path: Path) -> None:
    client = Client(tmp_path, b"x", headers={"content-length": "1001"})
    with pytest.raises(Refused) as refused:
        await receive_body(client.request, 1000)
    assert refused.value.reason is ApiCode.TOO_LARGE and client.asked == 0


async def test_a_body_that_becomes_too_long_is_refused_and_its_room_freed(tmp_path: Path) -> None:
    client = Client(tmp_path, b"x" * 600, b"x" * 600)
    with pytest.raises(Refused, match="larger than 1,000"):
        await receive_body(client.request, 1000)
    assert client.work.room.held == 0


async def test_a_body_that_trickles_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "GRACE", 0.05)
    client = Client(tmp_path, b"x", b"x")
    with pytest.raises(Refused, match="too slowly") as refused:
        await receive_body(client.request)
    assert refused.value.reason is ApiCode.SLOW_BODY and client.work.room.held == 0


async def test_a_client_that_disconnects_during_its_body_leaves_nothing_behind(tmp_path: Path) -> None:
    client = Client(tmp_path, b"x" * 1000)
    client.left.set()
    with pytest.raises(ClientDisconnect):
        await receive_body(client.request)
    assert client.work.room.held == 0


async def test_the_bytes_of_a_tenant_are_counted_over_all_its_bodies(node: Node) -> None:
    room = node.work.room
    room.take("default", room.tenant_bytes - 100)
    refused = await node.ask("POST", "/api/workers", raw=b"x" * 200)
    assert (refused.status, refused.code) == (429, ApiCode.BUSY) and refused.headers["retry-after"]
    room.give_back("default", room.tenant_bytes - 100)
    room.take("others", room.tenant_bytes)
    room.take("more", room.node_bytes - room.held)
    refused = await node.ask("POST", "/api/workers", raw=b"x" * 200)
    assert (refused.status, refused.code) == (503, ApiCode.UNAVAILABLE)


@pytest.fixture
async def blocked(tmp_path: Path) -> AsyncIterator[Client]:
    client = Client(tmp_path)
    yield client
    await client.work.offload.close()


async def test_a_job_ends_when_its_client_disconnects(blocked: Client, tmp_path: Path) -> None:
    job = Job("tests.offload.jobs_for_tests:wait_for")
    running = asyncio.ensure_future(offloaded(blocked.request, job, b"", {"path": str(tmp_path / "never")}))
    async with asyncio.timeout(20):
        while not blocked.work.offload.counts().processes:  # noqa: ASYNC110 (the condition sends no event)
            await asyncio.sleep(0.01)
    blocked.left.set()
    with pytest.raises(ClientDisconnect):
        await running
    assert blocked.work.offload.counts().running == 0


async def test_a_request_that_needs_too_much_gets_a_clear_error(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node.work.offload, "_memory_bytes", 100 * MB)
    body = b'{"name": "a", "script": "x", "modules": {' + b",".join(b'"%d":""' % i for i in range(1_500_000)) + b"}}"
    refused = await node.ask("POST", "/api/workers", raw=body)
    assert (refused.status, refused.code) == (422, ApiCode.WORK_LIMIT) and "memory" in refused.json["error"]["message"]


async def test_a_small_deploy_starts_no_process(node: Node) -> None:
    assert (await node.post(name="a", script=HELLO)).status == 201
    assert (await node.post(name="b", script=HELLO + "//" + "{[,]}" * 150_000, env={"A": 1})).status == 201
    assert node.work.offload.counts().endings == {}


async def test_a_large_deploy_is_the_same_as_a_small_one(node: Node) -> None:
    code = HELLO + "//" + "é" * (2 * MB)
    fields = {"env": {"A": [1, {"b": None}], "B": "text"}, "secrets": {"S": "secret"}, "routes": ["a.example/*"]}
    large = await node.post(name="large", script=code, source_maps={"worker.js": json.dumps({"version": 3})}, **fields)
    assert large.status == 201 and node.work.offload.counts().endings["unpack_job", "ok"] == 1
    version = node.live("large.localhost")
    assert version is not None and version.modules[0].source == code.encode() and version.main == "worker.js"
    assert (large.json["env"], large.json["secrets"], large.json["routes"]) == (fields["env"], ["S"], fields["routes"])
    assert node.store.source_maps(version.id) == {"worker.js": b'{"version": 3}'}
    refused = await node.post(name="large2", script=code, env={f"V{i}": 1 for i in range(200)})
    assert (refused.status, refused.code) == (400, ApiCode.TOO_MANY_VARS)
    refused = await node.post(name="large2", script=code, rotues=[])
    assert (
        refused.status == 400
        and "rotues" in refused.json["error"]["message"]
        and "routes" in refused.json["error"]["hint"]
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"bindings": [{}] * 300_000},
        {"routes": ["a"] * 300_000},
        {"env": {f"V{i}": i for i in range(700_000)}},
        {"env": {"A": [[]] * 400_000}},
        {"secrets": {f"V{i}": "" for i in range(100_000)}},
        {"crons": ["* * * * *"] * 100_000},
        {"egress": {"allow": ["a"] * 100_000}},
        {"queue_consumers": [{"queue": "a"}] * 50_000},
    ],
)
async def test_too_many_entries_in_a_field_are_refused_with_a_reason(node: Node, fields: dict[str, Any]) -> None:
    refused = await node.post(name="a", script=HELLO, **fields)
    assert refused.status in (400, 413) and len(refused.json["error"]["message"]) < 500
    assert refused.json["error"]["hint"] or next(iter(fields)) in refused.json["error"]["message"]


def test_every_failure_of_a_job_has_an_error() -> None:
    from atoll.offload.jobs import JobError, OutOfMemory, ProcessLost, TooManyJobs, TooMuchWork
    from atoll.offload.spool import SpoolFull

    told = {
        OutOfMemory("x"): ApiCode.WORK_LIMIT,
        TooMuchWork("x"): ApiCode.WORK_LIMIT,
        ProcessLost("x"): ApiCode.UNAVAILABLE,
        TooManyJobs("x", of_tenant=True): ApiCode.BUSY,
        TooManyJobs("x", of_tenant=False): ApiCode.UNAVAILABLE,
        SpoolFull("x", of_tenant=True): ApiCode.BUSY,
        JobError("x"): ApiCode.UNAVAILABLE,
    }
    for error, code in told.items():
        assert isinstance(error, JobError | SpoolFull) and work.work_refusal(error).reason is code
