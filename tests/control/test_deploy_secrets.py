"""Secrets in a deploy, as JSON and as Cloudflare's `secret_text`: sealed, kept, never shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from control_plane import HELLO, Node
from test_secrets import VALUE, files_with
from test_upload import send

from atoll.api.refusals import ApiCode

Start = Callable[..., Any]


async def test_a_deploy_may_add_secrets_and_removes_none(start: Start, tmp_path: Path) -> None:
    async with start() as node:
        made = await node.post(name="hello", script=HELLO, env={"A": 1}, secrets={"KEY": VALUE})
        assert made.status == 201 and made.json["secrets"] == ["KEY"] and VALUE.encode() not in made.content
        await node.put("hello", secrets={"OTHER": "two"}, message="one more")
        changed = await node.put("hello", secrets={"KEY": VALUE + "2"})
        assert changed.json["secrets"] == ["KEY", "OTHER"] and changed.json["env"] == {"A": 1}
        lines = (await node.ask("GET", "/api/audit")).json["audit"]
        told = [line["detail"].rpartition(": ")[2] for line in lines if line["action"] == "secret.put"]
        assert told == ["KEY", "OTHER", "KEY"]
        back = await node.ask("POST", "/api/workers/hello/rollback", {"version": 1})
        assert (back.status, back.code) == (409, ApiCode.SECRETS_CHANGED)
    async with start() as node:  # a restart opens them again
        live = node.live("hello.localhost")
        assert live is not None and live.secrets == {"KEY": VALUE + "2", "OTHER": "two"}
        await node.ask("POST", "/api/workers/hello/rollback", {"version": 1, "force": True})
        live = node.live("hello.localhost")
        assert live is not None and live.secrets == {"KEY": VALUE}
    assert not files_with(tmp_path, VALUE)


async def test_secret_text_of_a_form_is_a_secret(node: Node) -> None:
    answer = await send(
        node,
        ("metadata", "", b'{"name": "form", "main_module": "a.js", "bindings": ['
         b'{"type": "secret_text", "name": "KEY", "text": "%b"},'
         b' {"type": "plain_text", "name": "A", "text": "1"}]}' % VALUE.encode()),
        ("a.js", "application/javascript+module", HELLO.encode()),
    )  # fmt: skip
    assert answer.status == 201 and VALUE.encode() not in answer.content
    assert (answer.json["secrets"], answer.json["env"], answer.json["bindings"]) == (["KEY"], {"A": "1"}, [])
    live = node.live("form.localhost")
    assert live is not None and live.secrets == {"KEY": VALUE}


async def test_secrets_of_a_deploy_follow_the_usual_rules(node: Node) -> None:
    twofold = await node.post(name="a", script=HELLO, env={"KEY": 1}, secrets={"KEY": "x"})
    assert (twofold.status, twofold.code) == (400, ApiCode.BAD_BODY)
    assert (await node.post(name="a", script=HELLO, secrets={"KEY": "x" * 6000})).code == ApiCode.VAR_TOO_BIG
    assert (await node.post(name="a", script=HELLO, secrets={"no name": "x"})).code == ApiCode.BAD_BODY
    assert (await node.post(name="a", script=HELLO, secrets={"KEY": 1})).code == ApiCode.BAD_BODY
    many = {f"K{i}": "x" for i in range(129)}
    assert (await node.post(name="a", script=HELLO, secrets=many)).code == ApiCode.TOO_MANY_VARS
    assert (await node.ask("GET", "/api/workers/a")).status == 404


async def test_variables_and_secrets_count_together_after_the_change(node: Node) -> None:
    variables, secrets = {f"V{i}": 1 for i in range(100)}, {f"S{i}": "x" for i in range(100)}
    both = await node.post(name="a", script=HELLO, env=variables, secrets=secrets)
    assert (both.status, both.code) == (400, ApiCode.TOO_MANY_VARS)
    assert (await node.post(name="a", script=HELLO, env=variables)).status == 201
    assert (await node.put("a", secrets=secrets)).code == ApiCode.TOO_MANY_VARS
    assert (await node.put("a", env={}, secrets=secrets)).status == 200, "removed variables do not count"
    assert (await node.put("a", env=variables)).code == ApiCode.TOO_MANY_VARS, "remaining secrets count"


async def test_a_key_can_be_rotated_during_deploys_with_secrets(start: Start) -> None:
    async with start() as node:
        await node.post(name="hello", script=HELLO, secrets={"KEY": VALUE})
        key_ids = [0]
        for number in range(5):
            rotated = (await node.ask("POST", "/api/secrets/rotate-key")).json
            assert rotated["secrets"] == number + 1 and rotated["key_id"] != key_ids[-1]
            key_ids.append(rotated["key_id"])
            assert (await node.put("hello", secrets={f"K{number}": VALUE})).status == 200
    async with start() as node:
        live = node.live("hello.localhost")
        assert live is not None and len(live.secrets) == 6 and set(live.secrets.values()) == {VALUE}
