"""R2 on three real nodes: what one stores the others have, in whatever way it came, and a killed node loses nothing."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import itertools
import signal
import threading
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.bindings.r2.test_r2_api import ask, code
from tests.bindings.r2.test_s3 import ClientError, client_of, keys_of, names
from tests.cluster.conftest import Nodes
from tests.running import Answer, Atoll

__all__ = ["names"]  # a fixture

LARGE = bytes(range(256)) * 10_000
SCRIPT = """export default { async fetch(request, env) {
    const key = new URL(request.url).pathname.slice(1);
    if (request.method === "PUT") return Response.json((await env.R2.put(key, request.body)).etag);
    if (request.method === "POST") {
        const put = await env.R2.put(key, "once", { onlyIf: { etagDoesNotMatch: "*" } });
        return new Response(put === null ? "lost" : "won");
    }
    const found = await env.R2.get(key);
    return found === null ? new Response("none", { status: 404 }) : new Response(found.body);
} }"""
BUCKET = {"type": "r2", "name": "R2", "bucket": "files"}


@pytest.fixture(scope="module")
def files(nodes: Nodes) -> Nodes:
    nodes.deploy("files", SCRIPT, bindings=[BUCKET])
    return nodes


def via(node: Atoll, method: str, path: str, body: bytes | None = None) -> Answer:
    return node.request(method, node.host("files"), path, body)


def test_what_a_worker_stores_on_one_node_workers_on_the_others_read(files: Nodes) -> None:
    for number, body in enumerate((b"", b"small", LARGE)):
        writer = files.all[number % 3]
        assert via(writer, "PUT", f"/{number}", body).json == hashlib.md5(body).hexdigest()
        assert [via(node, "GET", f"/{number}").body for node in files.all] == [body] * 3
    outcomes = [""] * 12

    def race(index: int) -> None:
        outcomes[index] = via(files.all[index % 3], "POST", "/race").text

    threads = [threading.Thread(target=race, args=(index,)) for index in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["lost"] * 11 + ["won"]


def test_an_upload_in_parts_goes_from_node_to_node_and_a_deleted_key_opens_nothing_anywhere(files: Nodes) -> None:
    keys = keys_of(files.all[0])
    one, two, three = (client_of(node, keys) for node in files.all)
    upload = one.create_multipart_upload(Bucket="files", Key="parts")["UploadId"]
    parts = []
    for number, client, body in ((1, two, b"a" * (5 << 20)), (2, three, b"b" * 1000)):
        part = {"Bucket": "files", "Key": "parts", "UploadId": upload, "PartNumber": number}
        parts.append({"PartNumber": number, "ETag": client.upload_part(**part, Body=body)["ETag"]})
    three.complete_multipart_upload(Bucket="files", Key="parts", UploadId=upload, MultipartUpload={"Parts": parts})
    for client in (one, two):
        assert client.get_object(Bucket="files", Key="parts")["Body"].read() == b"a" * (5 << 20) + b"b" * 1000
    for key in ("d/1", "d/2", "e/1", "f"):
        two.put_object(Bucket="files", Key=key, Body=b"x")
    found = one.list_objects_v2(Bucket="files", Delimiter="/", Prefix="")
    assert [each["Prefix"] for each in found["CommonPrefixes"]] == ["d/", "e/"]
    deleted = files.all[1].control("DELETE", f"/api/r2-credentials/{keys['access_key_id']}")
    assert deleted.status == 204
    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        three.list_objects_v2(Bucket="files")
    for client in (one, two, three):
        client.close()


def test_settings_public_hosts_and_notifications_hold_on_every_node(files: Nodes) -> None:
    first, second, third = files.all
    assert second.control("POST", "/api/queues", {"name": "changes"}).status == 201
    assert second.control("POST", "/api/queues/changes/pause").status in (200, 204)
    rule = {"queue": "changes", "event_types": ["object-create"], "prefix": "told/"}
    assert ask(first, "POST", "/files/notifications", rule).status == 201
    cors = {"rules": [{"allowed_origins": ["https://a.example"], "allowed_methods": ["GET"]}]}
    assert (put := ask(first, "PUT", "/files/cors", cors)).status == 200, put.text
    assert [len(ask(node, "GET", "/files/cors").json["rules"]) for node in files.all] == [1] * 3
    shown = ask(second, "PUT", "/files/public")
    url = shown.json["url"]
    assert via(third, "PUT", "/told/page", b"hello").status == 200
    host = url.removeprefix("http://").partition("/")[0]
    for node in files.all:
        answer = node.request("GET", host, "/told/page", None, {"Origin": "https://a.example"})
        assert answer.text == "hello" and answer.headers["access-control-allow-origin"] == "https://a.example"

    def told() -> list[Any]:
        found = first.control("GET", "/api/queues/changes/messages?limit=100").json["messages"]
        return [each["body"]["object"]["key"] for each in found]

    first.wait_until(lambda: told() == ["told/page"], 20)
    assert ask(third, "DELETE", "/files/public").status == 204
    assert first.request("GET", host, "/told/page").status == 404
    assert code(ask(first, "GET", "/none/objects/x")) == 10007


def test_while_the_database_is_read_only_writes_say_so_and_everything_else_goes_on(files: Nodes) -> None:
    node = files.all[0]
    assert via(node, "PUT", "/kept", b"before").status == 200

    async def set_read_only(is_on: bool) -> None:
        connection = await asyncpg.connect(files.server.url)
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {'on' if is_on else 'off'}")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.close()

    asyncio.run(set_read_only(True))
    try:
        node.wait_until(lambda: ask(node, "PUT", "/files/objects/kept", b"after").status == 503, 10)
        refused = ask(node, "PUT", "/files/objects/kept", b"after")
        assert refused.status == 503 and "read-only" in refused.text and refused.headers["retry-after"], refused.text
        deployed = node.control("POST", "/api/workers", {"name": "no", "script": SCRIPT})
        assert deployed.status == 503 and "read-only" in deployed.text, deployed.text
        assert via(files.all[1], "GET", "/kept").text in ("before", "after"), "reads go on"
        assert [each.control("GET", "/readyz").status for each in files.all] == [200] * 3
    finally:
        asyncio.run(set_read_only(False))
    node.wait_until(lambda: via(node, "PUT", "/kept", b"again").status == 200, 20)
    assert [via(each, "GET", "/kept").text for each in files.all] == ["again"] * 3


def test_a_node_that_is_killed_loses_no_object_that_it_acknowledged(files: Nodes, tmp_path: Path) -> None:
    victim = files.add()
    acknowledged: dict[str, bytes] = {}
    count = itertools.count()

    def store() -> None:
        while True:
            number = next(count)
            body = b"%d" % number * (100 if number % 2 else 60_000)
            try:
                if ask(victim, "PUT", f"/files/objects/kill/{number}", body).status != 200:
                    return
            except (OSError, http.client.HTTPException):
                return
            acknowledged[f"/kill/{number}"] = body

    threads = [threading.Thread(target=store) for _ in range(4)]
    for thread in threads:
        thread.start()
    victim.wait_until(lambda: len(acknowledged) > 40, 30)
    victim.stop(signal.SIGKILL)
    for thread in threads:
        thread.join()
    files.all.remove(victim)
    for number, (path, body) in enumerate(acknowledged.items()):
        assert via(files.all[number % 3], "GET", path).body == body, path
    listed = ask(files.all[0], "GET", "/files/objects?prefix=kill/&limit=1000").json["objects"]
    assert {each["key"] for each in listed} >= {path[1:] for path in acknowledged}
    for each in listed:  # what was not acknowledged is there as a whole, or not at all
        body = via(files.all[1], "GET", f"/{each['key']}").body
        assert len(body) == each["size"] and hashlib.md5(body).hexdigest() == each["etag"].strip('"')
