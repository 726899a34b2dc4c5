"""Lines of the access log: their formats, and that no client can forge one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from atoll.front.access import AccessNotes, Note
from atoll.front.access_lines import Lines
from atoll.front.access_log import LogFile
from atoll.front.http1 import request_head
from atoll.front.peer import Peer, Proxies
from atoll.workers import Version

COMBINED = re.compile(
    rb'[0-9a-f.:]+ - - \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\] "([^"]*)" \d{3} \d+ "([^"]*)" "([^"]*)"\n'
)
VERSION = Version("id", "worker id", "shop", "acme", (), "worker.js")


def note(raw: bytes, peer: Peer | None = None, *, parsed: bool = True, whole: bool = True) -> Note:
    peer = peer or Peer(Proxies(), "10.1.2.3")
    head = request_head(raw, 8192, peer)[4] if parsed else raw
    return 5.0, 5.0125, peer, head, 1, 200, 12, whole, VERSION if parsed else None


def test_a_combined_line_has_the_fields_of_apache_and_nginx() -> None:
    raw = b"GET /a?b=1 HTTP/1.1\r\nHost: shop.test\r\nReferer: http://x.test/y\r\nUser-Agent: Curl/8 (X)\r\n\r\n"
    line = Lines().combined(note(raw))
    found = COMBINED.fullmatch(line)
    assert found is not None and line.startswith(b"10.1.2.3 - - [") and b'" 200 12 "' in line
    assert found.groups() == (b"GET /a?b=1 HTTP/1.1", b"http://x.test/y", b"Curl/8 (X)")


def test_a_json_line_says_who_asked_whom_and_how_long_it_took() -> None:
    raw = b"POST /a HTTP/1.1\r\nHost: shop.test:8080\r\nuser-agent: Curl\r\n\r\n"
    entry = json.loads(Lines().json(note(raw, whole=False)))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("time"))
    assert entry == {
        "client": "10.1.2.3", "method": "POST", "scheme": "http", "host": "shop.test:8080", "path": "/a",
        "protocol": "HTTP/1.1", "status": 200, "bytes": 12, "duration_ms": 12.5, "complete": False, "tenant": "acme",
        "worker": "shop", "version": "id", "referer": "", "user_agent": "Curl",
    }  # fmt: skip


def test_the_client_behind_a_trusted_proxy_is_named_and_others_are_not_believed() -> None:
    raw = b"GET / HTTP/1.1\r\nHost: shop.test\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n"
    proxy = Peer(Proxies(("10.0.0.0/8",)), "10.1.2.3", is_proxy=True)
    assert Lines().combined(note(raw, proxy)).startswith(b"203.0.113.9 - - ")
    assert Lines().combined(note(raw)).startswith(b"10.1.2.3 - - ")


@pytest.mark.parametrize(
    "raw",
    [
        b'GET /"%20200%201 HTTP/1.1\r\nHost: a\r\nUser-Agent: x" 200 1 "\r\n\r\n',
        b"GET /\x1b[2J\x9b31m HTTP/1.1\r\nHost: a\r\nUser-Agent: \x1b]0;t\x07\r\n\r\n",
        b"\x00\x01 binary \xff\n10.9.9.9 - - forged\r\n\r\n",
        b'{"a":"\n"}\r\n',
        "GET /\u202e HTTP/1.1\r\nHost: a\r\nReferer: \u2028x\r\n\r\n".encode(),
    ],
)
@pytest.mark.parametrize("parsed", [True, False])
def test_an_attack_on_the_access_log_stays_one_harmless_line(raw: bytes, parsed: bool) -> None:
    if parsed and not raw.startswith(b"GET"):
        return
    lines = Lines()
    for line in (lines.combined(note(raw, parsed=parsed)), lines.json(note(raw, parsed=parsed))):
        assert line.count(b"\n") == 1 and line.endswith(b"\n")
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", line.decode())
    assert COMBINED.fullmatch(lines.combined(note(raw, parsed=parsed)))
    json.loads(lines.json(note(raw, parsed=parsed)))


def test_ids_that_look_like_credentials_are_not_written() -> None:
    secret = "0123456789abcdef0123456789abcdef"
    raw = f"GET /?token={secret} HTTP/1.1\r\nHost: a\r\nReferer: http://b/{secret}\r\n\r\n".encode()
    for line in (Lines().combined(note(raw)), Lines().json(note(raw))):
        assert secret.encode() not in line and line.count(b"REDACTED") == 2


def test_a_share_of_requests_is_spread_evenly() -> None:
    notes = AccessNotes(0.25, lambda: None)
    assert [notes.begin() > 0 for _ in range(8)] == [False, False, False, True] * 2


def test_notes_that_nobody_takes_are_bounded_and_counted() -> None:
    firsts: list[None] = []
    notes = AccessNotes(1.0, lambda: firsts.append(None))
    peer = Peer(Proxies(), "10.1.2.3")
    for _ in range(4_000):
        notes.add(1.0, peer, b"x" * 100_000, 1, 200, 0, True, None)
    taken = notes.take()
    assert len(firsts) == 1 and len(taken) + notes.dropped == 4_000 and notes.dropped > 1_000
    assert max(len(each[3]) for each in taken) == 8192
    notes.add(1.0, peer, b"x", 1, 200, 0, True, None)
    assert len(notes.take()) == 1, "there is room again"


def test_a_full_file_is_rotated_and_the_oldest_is_deleted(tmp_path: Path) -> None:
    file = LogFile(str(tmp_path / "access.log"), 10, 2)
    for line in (b"first\n", b"second\n", b"third\n", b"fourth\n"):
        file.write(line)
    file.close()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "access.log": b"fourth\n", "access.log.1": b"third\n", "access.log.2": b"second\n",
    }  # fmt: skip
    assert (tmp_path / "access.log").stat().st_mode & 0o777 == 0o640


def test_a_file_that_was_moved_or_deleted_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    first, second = LogFile(str(path), 0, 0), LogFile(str(path), 0, 0)  # two processes of one node
    first.write(b"a\n")
    path.rename(tmp_path / "moved")
    first.write(b"b\n")
    second.write(b"c\n")
    path.unlink()
    second.write(b"d\n")
    assert (tmp_path / "moved").read_bytes() == b"a\n" and path.read_bytes() == b"d\n"
    first.close()
    second.close()
