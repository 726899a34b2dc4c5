"""Deploys as multipart forms: parts become modules, and no page of another site can send one."""

from __future__ import annotations

import asyncio
import base64

import pytest
from control_plane import HELLO, Answer, Node

from atoll.api.refusals import ApiCode

BOUNDARY = "xx-boundary-xx"
Part = tuple[str, str, bytes]  # name, content type, content


def form(*parts: Part) -> bytes:
    pieces = []
    for name, kind, content in parts:
        filename = "" if not kind else f'; filename="{name}"\r\nContent-Type: {kind}'
        pieces.append(
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{filename}\r\n\r\n'.encode()
            + content
            + b"\r\n"
        )
    return b"".join(pieces) + f"--{BOUNDARY}--\r\n".encode()


async def send(node: Node, *parts: Part, method: str = "POST", path: str = "/api/workers", **headers: str) -> Answer:
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    headers = {"x_atoll_tenant": "default", "content_type": kind, **headers}
    return await node.ask(method, path, raw=form(*parts), **{name: value for name, value in headers.items() if value})


async def test_every_part_but_the_metadata_is_a_module(node: Node) -> None:
    answer = await send(
        node,
        ("metadata", "", b'{"name": "many", "main_module": "index", "bindings": [{"type": "echo", "name": "ECHO"},'
         b'{"type": "plain_text", "name": "A", "text": "1"}, {"type": "json", "name": "J", "json": {"x": [1]}}]}'),
        ("index", "application/javascript+module", HELLO.encode()),
        ("lib/page.html", "text/html", b"<p>"),
        ("data.bin", "application/octet-stream", b"\0\xff" * 1_000_000),
        ("table.json", "application/octet-stream", b"{}"),
        ("index.map", "application/source-map", b'{"version":3}'),
    )  # fmt: skip
    assert answer.status == 201, answer.content
    assert answer.json["env"] == {"A": "1", "J": {"x": [1]}}
    assert answer.json["bindings"] == [{"type": "echo", "name": "ECHO"}]
    version = node.live("many.localhost")
    assert version is not None and version.main == "index"
    assert [(m.path, m.kind, m.source[:5]) for m in version.modules] == [
        ("index", "esm", HELLO.encode()[:5]),
        ("lib/page.html", "text", b"<p>"),
        ("data.bin", "data", b"\0\xff\0\xff\0"),
        ("table.json", "json", b"{}"),
    ]
    assert node.store.source_maps(version.id) == {"index": b'{"version":3}'}


async def test_a_form_can_update_a_worker(node: Node) -> None:
    await node.post(name="hello", script=HELLO, env={"A": 1})
    answer = await send(
        node,
        ("metadata", "application/json", b'{"main": "new.js", "message": "by form"}'),
        ("new.js", "text/javascript", b"export default {}"),
        method="PUT",
        path="/api/workers/hello",
    )
    assert answer.status == 200
    assert answer.json["env"] == {"A": 1} and answer.json["version"]["message"] == "by form"


async def test_a_form_that_a_web_page_could_send_is_refused(node: Node) -> None:
    parts = (("metadata", "", b'{"name": "a", "main": "a.js"}'), ("a.js", "text/javascript", HELLO.encode()))
    refused = await send(node, *parts, x_atoll_tenant="")
    assert (refused.status, refused.code) == (415, ApiCode.MEDIA_TYPE)
    refused = await send(node, *parts, origin="http://evil.example")
    assert (refused.status, refused.code) == (403, ApiCode.FORBIDDEN_ORIGIN)
    assert (await send(node, *parts)).status == 201


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ([("a.js", "text/javascript", b"")], "no part `metadata`"),
        ([("metadata", "", b"[]")], "metadata"),
        ([("metadata", "", b"\xff")], "metadata"),
        ([("metadata", "", b'{"name": "a", "script": "x"}')], "`script`"),
        ([("metadata", "", b'{"name": "a", "nmae": "x"}')], "nmae"),
        ([("metadata", "", b'{"name": "a", "main": "b.js"}'), ("a.js", "text/javascript", b"")], "b.js"),
        ([("metadata", "", b'{"name": "a", "main": "a.js"}'), ("a.js", "a/b", b""), ("a.js", "a/b", b"")], "two parts"),
        ([("metadata", "", b'{"name": "a", "main": "a.js"}'), ("a.js", "", b"")], "not a file"),
        ([("metadata", "", b'{"name": "a", "main": "../a.js"}'), ("../a.js", "text/javascript", b"")], "relative"),
        ([("metadata", "", b'{"name": "a", "main": "a.js"}'), ("a.js", "text/javascript", b"\xff")], "UTF-8"),
        ([("metadata", "", b'{"env": 1, "bindings": [{"type": "json", "name": "X", "json": 1}]}')], "`env`"),
        ([("metadata", "", b'{"name": "a", "bindings": [{"type": "secret_text", "name": "X"}]}')], "no `text`"),
    ],
)
async def test_an_invalid_form_is_refused(node: Node, parts: list[Part], says: str) -> None:
    answer = await send(node, *parts)
    assert (answer.status, answer.code) == (400, ApiCode.BAD_BODY)
    assert says in answer.json["error"]["message"]


@pytest.mark.parametrize("raw", [b"", b"nonsense", f"--{BOUNDARY}\r\n".encode(), f"--{BOUNDARY}\r\n\r\nx".encode()])
async def test_a_body_that_is_not_a_form_is_refused(node: Node, raw: bytes) -> None:
    for kind in (f"multipart/form-data; boundary={BOUNDARY}", "multipart/form-data"):
        answer = await node.ask("POST", "/api/workers", raw=raw, content_type=kind, x_atoll_tenant="default")
        assert (answer.status, answer.code) == (400, ApiCode.BAD_BODY)


async def test_a_form_is_bounded(node: Node) -> None:
    many = [(f"m{i}.txt", "text/plain", b"") for i in range(1100)]
    answer = await send(node, ("metadata", "", b'{"name": "a", "main": "a.js"}'), *many)
    assert (answer.status, answer.code) == (413, ApiCode.TOO_LARGE)
    large = ("a.js", "text/javascript", b" " * (22 * 1024 * 1024))
    answer = await send(node, ("metadata", "", b'{"name": "a", "main": "a.js"}'), large)
    assert (answer.status, answer.code) == (413, ApiCode.TOO_LARGE)


async def test_the_type_of_a_module_can_be_set_in_json_too(node: Node) -> None:
    value = {"base64": base64.b64encode(HELLO.encode()).decode(), "kind": "esm"}
    assert (await node.post(name="a", modules={"entry": value}, main="entry")).status == 201
    answer = await node.post(name="b", modules={"entry": {**value, "kind": "exe"}}, main="entry")
    assert answer.code == ApiCode.BAD_BODY and "exe" in answer.json["error"]["message"]


async def test_two_forms_at_once_do_not_mix(node: Node) -> None:
    answers = await asyncio.gather(
        *(
            send(
                node,
                ("metadata", "", b'{"name": "w%d", "main": "a.js"}' % i),
                ("a.js", "text/javascript", b"// %d" % i),
            )
            for i in range(5)
        )
    )
    assert {answer.status for answer in answers} == {201}
    for i in range(5):
        version = node.live(f"w{i}.localhost")
        assert version is not None and version.modules[0].source == b"// %d" % i
