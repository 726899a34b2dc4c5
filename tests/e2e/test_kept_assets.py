"""Responses with static assets that the front keeps: the same as the first one, and never those of something else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.assets.sites import deploy_site, sha256
from tests.running import Answer, Atoll

TEXT = b"body { color: green }\n" * 200
SITE = {"/index.html": b"<h1>home</h1>", "/a.css": TEXT, "/empty.txt": b"", "/sub/index.html": b"sub"}
WORKER = "export default { fetch: () => new Response('worker') }"


def seen(answer: Answer) -> tuple[int, bytes, dict[str, str]]:
    return answer.status, answer.body, {name: value for name, value in answer.headers.items() if name != "date"}


@pytest.mark.parametrize("accept", ["", "gzip", "br, gzip", "identity"])
def test_a_kept_response_is_the_first_one_again(atoll: Atoll, accept: str) -> None:
    deploy_site(atoll, "kept", SITE, headers="/*\n  X-Path: yes\n  Set-Cookie: a=b; Domain=localhost\n")
    headers = {"Accept-Encoding": accept} if accept else {}
    for path in ("/", "/a.css", "/a.css?x=1", "/empty.txt", "/sub/"):
        first, *others = (seen(atoll.get("kept", path, headers)) for _ in range(4))
        assert others == [first] * 3 and first[0] == 200
        assert first[2]["x-path"] == "yes" and "set-cookie" not in first[2]
        assert first[2]["cf-cache-status"] == "HIT"
    tag = f'"{sha256(TEXT)[:32]}"'
    assert atoll.get("kept", "/a.css", {"If-None-Match": tag, **headers}).status == 304
    assert atoll.get("kept", "/a.css", {"Range": "bytes=0-3", **headers}).body == b"body"
    assert "cache-control" not in atoll.get("kept", "/a.css", {"Authorization": "x", **headers}).headers
    head = atoll.request("HEAD", atoll.host("kept"), "/a.css", None, headers)
    assert (head.status, head.body) == (200, b"") and int(head.headers["content-length"]) <= len(TEXT)
    assert atoll.post("kept", "/a.css").status == 405


def test_a_deploy_replaces_what_was_kept(atoll: Atoll) -> None:
    for number in range(3):
        deploy_site(atoll, "kept-anew", {"/a.txt": b"version %d" % number})
        assert [atoll.get("kept-anew", "/a.txt").body for _ in range(3)] == [b"version %d" % number] * 3
    deploy_site(atoll, "kept-anew", {"/a.txt": b"version 2"}, WORKER, run_worker_first=True)
    assert atoll.get("kept-anew", "/a.txt").text == "worker"


def test_rules_about_a_host_are_applied_on_that_host_only(atoll: Atoll) -> None:
    rules = "https://kept-host.localhost/*\n  X-Own: yes\n"
    deploy_site(atoll, "kept-host", SITE, headers=rules, routes=["kept.example/*"])
    for _ in range(3):
        assert atoll.get("kept-host", "/a.css").headers["x-own"] == "yes"
        assert "x-own" not in atoll.request("GET", "kept.example", "/a.css").headers


def test_files_of_the_binding_do_not_answer_for_the_worker(atoll: Atoll) -> None:
    script = """export default { async fetch(request, env) {
      return new Response("worker and " + await (await env.ASSETS.fetch(request)).text()); } }"""
    bindings = [{"type": "assets", "name": "ASSETS"}]
    deploy_site(atoll, "kept-first", {"/a.txt": b"file"}, script, run_worker_first=True, bindings=bindings)
    assert [atoll.get("kept-first", "/a.txt").text for _ in range(4)] == ["worker and file"] * 4


def test_conditions_and_ranges_read_no_more_than_they_send(atoll: Atoll) -> None:
    big = os.urandom(24 << 20)
    deploy_site(atoll, "kept-unread", {"/big.bin": big})

    def read_by(headers: dict[str, str], status: int, size: int) -> int:
        """Bytes that the node read from files and sockets meanwhile, those that the kernel sends itself included."""
        before = read_bytes()
        answer = atoll.get("kept-unread", "/big.bin", headers)
        assert (answer.status, len(answer.body)) == (status, size)
        return read_bytes() - before

    def read_bytes() -> int:
        return int(Path(f"/proc/{atoll.pid}/io").read_text().split()[1])

    assert read_by({}, 200, len(big)) >= len(big)
    assert read_by({"Range": "bytes=-1000"}, 206, 1000) < 4 << 20
    assert read_by({"If-None-Match": f'"{sha256(big)[:32]}"'}, 304, 0) < 4 << 20
