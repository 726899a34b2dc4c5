"""Secrets: sealed on disk, visible only to the worker, kept by deploys, and bound to their place."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from control_plane import HELLO, Clock, Node

from atoll.api.refusals import ApiCode
from atoll.control.store.vault import CannotOpen, Vault
from atoll.db.folder import KEY_FILE
from atoll.errors import StartError

Start = Callable[..., Any]
VALUE = "s3cr3t-value-that-nobody-must-see"


async def put(node: Node, name: str = "KEY", value: str = VALUE, worker: str = "hello") -> Any:
    answer = await node.ask("PUT", f"/api/workers/{worker}/secrets/{name}", {"value": value})
    assert answer.status == 200, answer.content
    assert VALUE.encode() not in answer.content
    return answer.json


def files_with(folder: Path, text: str) -> list[str]:
    return [path.name for path in folder.iterdir() if path.is_file() and text.encode() in path.read_bytes()]


async def test_setting_a_secret_creates_an_active_version(start: Start) -> None:
    async with start() as node:
        await node.post(name="hello", script=HELLO, env={"A": 1}, message="first")
        changed = await put(node)
        live = node.live("hello.localhost")
        assert live is not None and live.secrets == {"KEY": VALUE} and live.env == {"A": 1}
        assert changed == {"name": "KEY", "version_id": live.id, "version_number": 2}
        assert VALUE not in repr(live)
    async with start() as node:
        live = node.live("hello.localhost")
        assert live is not None and live.secrets == {"KEY": VALUE}


async def test_no_endpoint_or_file_shows_the_value(node: Node, tmp_path: Path) -> None:
    await node.post(name="hello", script=HELLO)
    await put(node)
    for path in ("", "/versions", "/versions/2", "/secrets", "/logs"):
        answer = await node.ask("GET", f"/api/workers/hello{path}")
        assert answer.status == 200 and VALUE.encode() not in answer.content
    assert VALUE.encode() not in (await node.ask("GET", "/api/audit")).content
    assert (await node.ask("GET", "/api/workers/hello")).json["secrets"] == ["KEY"]
    listed = (await node.ask("GET", "/api/workers/hello/secrets")).json
    assert listed == {"secrets": [{"name": "KEY", "updated_at": "2027-01-15T08:00:00.500Z"}]}
    await node.database.write(lambda _: None)
    assert files_with(tmp_path, "KEY") and not files_with(tmp_path, VALUE)


async def test_a_deploy_keeps_secrets(node: Node) -> None:
    await node.post(name="hello", script=HELLO)
    await put(node)
    await node.put("hello", script=HELLO + "//2", env={})
    live = node.live("hello.localhost")
    assert live is not None and live.secrets == {"KEY": VALUE}


async def test_a_secret_can_be_changed_and_deleted(node: Node, clock: Clock) -> None:
    await node.post(name="hello", script=HELLO)
    await put(node)
    await put(node, "OTHER", "")
    await put(node, value="changed")
    live = node.live("hello.localhost")
    assert live is not None and live.secrets == {"OTHER": "", "KEY": "changed"}
    assert (await node.ask("DELETE", "/api/workers/hello/secrets/KEY")).status == 204
    live = node.live("hello.localhost")
    assert live is not None and live.secrets == {"OTHER": ""}
    assert (await node.ask("DELETE", "/api/workers/hello/secrets/KEY")).code == ApiCode.NOT_FOUND
    versions = (await node.ask("GET", "/api/workers/hello/versions")).json["versions"]
    assert [version["message"] for version in versions] == [
        "secret KEY deleted", "secret KEY set", "secret OTHER set", "secret KEY set", "",
    ]  # fmt: skip
    lines = (await node.ask("GET", "/api/audit")).json["audit"]
    assert [line["action"] for line in lines][:3] == ["secret.delete", "secret.put", "secret.put"]


async def test_rollback_across_a_change_of_secrets_needs_force(node: Node) -> None:
    await node.post(name="hello", script=HELLO)
    await put(node, value="old")
    await put(node, value="new")
    await node.put("hello", script=HELLO + "//2")
    same = await node.ask("POST", "/api/workers/hello/rollback", {"version": 3})
    assert same.status == 200
    answer = await node.ask("POST", "/api/workers/hello/rollback", {"version": 2})
    assert (answer.status, answer.code) == (409, ApiCode.SECRETS_CHANGED) and "KEY" in answer.json["error"]["message"]
    answer = await node.ask("POST", "/api/workers/hello/versions/2/activate")
    assert (answer.status, answer.code) == (409, ApiCode.SECRETS_CHANGED)
    assert (await node.ask("POST", "/api/workers/hello/versions/2/activate?force=yes")).code == ApiCode.BAD_BODY
    assert (await node.ask("POST", "/api/workers/hello/rollback", {"version": 2, "force": True})).status == 200
    live = node.live("hello.localhost")
    assert live is not None and live.secrets == {"KEY": "old"}


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("1X", "v", ApiCode.BAD_BODY),
        ("A-B", "v", ApiCode.BAD_BODY),
        ("VAR", "v", ApiCode.BAD_BODY),
        ("ECHO", "v", ApiCode.BAD_BODY),
        ("KEY", "ü" * 2600, ApiCode.VAR_TOO_BIG),
        ("KEY", "x" * 6000, ApiCode.VAR_TOO_BIG),
        ("KEY", 5, ApiCode.BAD_BODY),
        ("KEY", None, ApiCode.BAD_BODY),
    ],
)
async def test_an_invalid_secret_is_refused(node: Node, name: str, value: Any, code: ApiCode) -> None:
    await node.post(name="hello", script=HELLO, env={"VAR": 1}, bindings=[{"type": "echo", "name": "ECHO"}])
    answer = await node.ask("PUT", f"/api/workers/hello/secrets/{name}", {"value": value})
    assert answer.code == code
    assert (await node.ask("GET", "/api/workers/hello")).json["version"]["number"] == 1


async def test_a_variable_cannot_take_the_name_of_a_secret(node: Node) -> None:
    await node.post(name="hello", script=HELLO)
    await put(node)
    assert (await node.put("hello", env={"KEY": 1})).code == ApiCode.BAD_BODY


async def test_secrets_without_a_version_are_deleted(node: Node) -> None:
    await node.post(name="hello", script=HELLO)
    for i in range(105):
        await put(node, value=str(i))
    [(count,)] = node.database.read(lambda c: c.execute("SELECT count(*) FROM secrets").fetchall())
    assert count == 100
    await node.ask("DELETE", "/api/workers/hello")
    assert node.database.read(lambda c: c.execute("SELECT count(*) FROM secrets").fetchall()) == [(0,)]


async def test_a_rotation_reseals_everything_and_drops_the_old_key(start: Start, tmp_path: Path) -> None:
    async with start() as node:
        await node.post(name="hello", script=HELLO)
        await put(node)
        sql = "SELECT sealed FROM secrets"
        [before] = node.database.read(lambda c: [row[0] for row in c.execute(sql)])
        old_file = (tmp_path / KEY_FILE).read_text()
        answer = await node.ask("POST", "/api/secrets/rotate-key")
        assert answer.json == {"key_id": 2, "secrets": 1}
        await node.database.write(lambda _: None)
        [after] = node.database.read(lambda c: [row[0] for row in c.execute(sql)])
        assert before[0] == 1 and after[0] == 2 and before[1:] != after[1:]
        assert old_file.split(":")[1].strip() not in (tmp_path / KEY_FILE).read_text()
        assert (await node.ask("POST", "/api/secrets/rotate-key")).json["key_id"] == 1
    async with start() as node:
        live = node.live("hello.localhost")
        assert live is not None and live.secrets == {"KEY": VALUE}
        await put(node, "MORE", "x")


@pytest.mark.parametrize("at", ["add_key", "seal_anew", "drop_old_keys"])
async def test_an_interrupted_rotation_loses_no_secret(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """A crash before one of its steps: everything on disk still opens, and the next rotation completes it."""
    async with start() as node:
        await node.post(name="hello", script=HELLO, secrets={"KEY": VALUE})
        owner = node.store if at == "seal_anew" else node.store.vault
        monkeypatch.setattr(owner, at, Mock(side_effect=OSError("the power is cut")))
        assert (await node.ask("POST", "/api/secrets/rotate-key")).status == 500
    async with start() as node:
        live = node.live("hello.localhost")
        assert live is not None and live.secrets == {"KEY": VALUE}
        assert (await node.ask("PUT", "/api/workers/hello/secrets/MORE", {"value": VALUE})).status == 200
        assert (await node.ask("POST", "/api/secrets/rotate-key")).json["secrets"] == 2
        assert (tmp_path / KEY_FILE).read_text().count(":") == 1, "the older keys are gone"
    async with start() as node:
        live = node.live("hello.localhost")
        assert live is not None and live.secrets == {"KEY": VALUE, "MORE": VALUE}


async def test_with_another_root_key_the_node_does_not_start(start: Start, tmp_path: Path) -> None:
    async with start() as node:
        await node.post(name="hello", script=HELLO)
        await put(node)
    (tmp_path / KEY_FILE).unlink()
    with pytest.raises(StartError, match="cannot be opened"):
        async with start():
            pass
    assert not (tmp_path / KEY_FILE).exists()  # a new key in its place would be mistaken for the old one


# The vault itself


def test_only_the_owner_can_read_the_key_file(tmp_path: Path) -> None:
    Vault(tmp_path).seal("x", "acme", "w", "N")
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("place", [("globex", "w", "N"), ("acme", "v", "N"), ("acme", "w", "M")])
def test_a_sealed_value_opens_only_in_its_place(tmp_path: Path, place: tuple[str, str, str]) -> None:
    vault = Vault(tmp_path)
    sealed = vault.seal("x", "acme", "w", "N")
    assert vault.open(sealed, "acme", "w", "N") == "x"
    with pytest.raises(CannotOpen):
        vault.open(sealed, *place)
    with pytest.raises(CannotOpen):
        vault.open(sealed[:-1] + bytes([sealed[-1] ^ 1]), "acme", "w", "N")


def test_a_key_from_the_environment_leaves_no_file(tmp_path: Path) -> None:
    one, two = (base64.b64encode(os.urandom(32)).decode() for _ in range(2))
    sealed = Vault(tmp_path, one).seal("x", "t", "w", "N")
    vault = Vault(tmp_path, f"1:{one},2:{two}")
    assert vault.open(sealed, "t", "w", "N") == "x" and vault.key_id == 2
    assert vault.seal("x", "t", "w", "N")[0] == 2
    assert not (tmp_path / KEY_FILE).exists()


@pytest.mark.parametrize("text", ["nonsense", "1:", "0:" + "A" * 43 + "=", "1:AAAA", "x:" + "A" * 43 + "=",
                                  "1:" + "A" * 43 + "=,1:" + "A" * 43 + "="])  # fmt: skip
def test_an_invalid_key_is_reported(tmp_path: Path, text: str) -> None:
    with pytest.raises(StartError):
        Vault(tmp_path, text)
