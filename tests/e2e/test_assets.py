"""Static assets on a real node: deployed over the API, asked for over HTTP."""

from __future__ import annotations

import gzip
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import brotli
import pytest

from tests.assets.sites import add_manifest, deploy_site, manifest_of, packed, sha256, upload
from tests.running import Atoll

PAGE = b"<h1>home</h1>"
SCRIPT = b"export const answer = 42;\n" * 500
BIG = bytes(range(256)) * 12_000  # 3 MB: not in the memory cache
SITE = {"/index.html": PAGE, "/about.html": b"about", "/app.js": SCRIPT, "/big.bin": BIG, "/404.html": b"gone"}
WORKER = "export default { fetch(request) { return new Response(`worker ${new URL(request.url).pathname}`); } }"
VIA_BINDING = """export default { async fetch(request, env) {
  const url = new URL(request.url);
  const answer = await env.ASSETS.fetch(new Request(new URL(url.searchParams.get("p"), "http://any.example"), request));
  const body = new Uint8Array(await answer.arrayBuffer());
  return Response.json({ status: answer.status, url: answer.url, size: body.length, last: body.at(-1) ?? null,
    type: answer.headers.get("content-type"), tag: answer.headers.get("etag") });
} }"""
BINDING = [{"type": "assets", "name": "ASSETS"}]


def calls(atoll: Atoll) -> int:
    found: int = atoll.pool()["calls"]
    return found


def test_a_site_without_a_worker(atoll: Atoll) -> None:
    before = calls(atoll)
    shown = deploy_site(atoll, "as-site", SITE, not_found_handling="404-page", headers="/*\n  X-Site: yes\n")
    assert shown["assets"]["files"] == 5
    home = atoll.get("as-site")
    assert (home.status, home.body, home.headers["content-type"]) == (200, PAGE, "text/html; charset=utf-8")
    assert home.headers["cache-control"] == "public, max-age=0, must-revalidate"
    assert home.headers["etag"] == f'"{sha256(PAGE)[:32]}"' and home.headers["x-site"] == "yes"
    moved = atoll.get("as-site", "/about.html?q=1")
    assert (moved.status, moved.headers["location"], moved.headers["x-site"]) == (307, "/about?q=1", "yes")
    gone = atoll.get("as-site", "/x/y")
    assert (gone.status, gone.body, gone.headers["x-site"]) == (404, b"gone", "yes")
    known = atoll.get("as-site", "/", {"If-None-Match": home.headers["etag"], "Authorization": "x"})
    assert (known.status, known.body, known.headers["x-site"]) == (304, b"", "yes")
    assert "cache-control" not in known.headers and "content-length" not in known.headers
    posted = atoll.post("as-site", "/", b"body")
    assert (posted.status, posted.headers["allow"]) == (405, "GET, HEAD")
    head = atoll.request("HEAD", atoll.host("as-site"), "/big.bin")
    assert (head.status, head.headers["content-length"], head.body) == (200, str(len(BIG)), b"")
    assert calls(atoll) == before  # no isolate was called


def test_large_files_and_ranges_arrive_whole(atoll: Atoll) -> None:
    deploy_site(atoll, "as-large", SITE)
    for _ in range(2):
        assert atoll.get("as-large", "/big.bin").body == BIG
    part = atoll.get("as-large", "/big.bin", {"Range": "bytes=1000-2000999"})
    assert (part.status, part.headers["content-range"]) == (206, f"bytes 1000-2000999/{len(BIG)}")
    assert part.body == BIG[1000:2001000]
    small = atoll.get("as-large", "/app.js", {"Range": "bytes=-5"})
    assert (small.status, small.body) == (206, SCRIPT[-5:])
    assert atoll.get("as-large", "/app.js").body == SCRIPT
    assert atoll.get("as-large", "/app.js", {"Range": "bytes=-5"}).body == SCRIPT[-5:]
    assert atoll.get("as-large", "/app.js", {"Range": "bytes=99999-"}).status == 416


def test_files_are_compressed_for_those_who_accept_it(atoll: Atoll) -> None:
    deploy_site(atoll, "as-packed", SITE)
    plain = atoll.get("as-packed", "/app.js")
    assert plain.body == SCRIPT and plain.headers["vary"] == "Accept-Encoding"
    assert "content-encoding" not in plain.headers
    for accept, unpack in (("gzip", gzip.decompress), ("gzip, br", brotli.decompress)):
        coded = atoll.get("as-packed", "/app.js", {"Accept-Encoding": accept})
        assert coded.headers["content-encoding"] == accept.split()[-1]
        assert len(coded.body) < len(SCRIPT) / 4 and unpack(coded.body) == SCRIPT
        assert coded.headers["etag"] == f"W/{plain.headers['etag']}"
        known = atoll.get("as-packed", "/app.js", {"Accept-Encoding": accept, "If-None-Match": coded.headers["etag"]})
        assert known.status == 304
    tiny = atoll.get("as-packed", "/about", {"Accept-Encoding": "br"})
    assert tiny.body == b"about" and "vary" not in tiny.headers


def test_a_worker_gets_what_no_file_answers(atoll: Atoll) -> None:
    deploy_site(atoll, "as-both", SITE, WORKER, run_worker_first=["/api/*"], redirects="/old /about 301\n")
    assert atoll.get("as-both").body == PAGE
    assert atoll.get("as-both", "/api/x").text == "worker /api/x"
    assert atoll.get("as-both", "/else").text == "worker /else"
    assert atoll.post("as-both", "/else", b"x" * 300_000).text == "worker /else"
    assert atoll.get("as-both", "/old").headers["location"] == "/about"
    deploy_site(atoll, "as-both", SITE, WORKER, run_worker_first=True)
    assert atoll.get("as-both").text == "worker /"


def test_a_worker_reaches_its_files_by_their_binding(atoll: Atoll) -> None:
    deploy_site(
        atoll, "as-binding", SITE, VIA_BINDING, run_worker_first=True, bindings=BINDING, not_found_handling="404-page"
    )

    def get(path: str, **headers: str) -> dict[str, object]:
        answer = atoll.get("as-binding", f"/?p={path}", headers)
        assert answer.status == 200, answer.text
        found: dict[str, object] = answer.json
        return found

    assert get("/")["size"] == len(PAGE) and get("/")["type"] == "text/html; charset=utf-8"
    moved = get("/about.html")  # redirects are followed, as fetch() does
    assert (moved["status"], moved["size"], moved["url"]) == (200, 5, "http://any.example/about")
    assert get("/nothing")["status"] == 404
    big = get("/big.bin")
    assert (big["size"], big["last"]) == (len(BIG), 255)
    assert get("/app.js")["size"] == len(SCRIPT)
    assert get("/", **{"If-None-Match": str(get("/")["tag"])})["status"] == 304


def test_another_worker_is_served_the_same_files(atoll: Atoll) -> None:
    deploy_site(atoll, "as-target", SITE)
    script = """export default { async fetch(request, env) {
      const answers = [await env.SITE.fetch("http://x/about.html"), await env.SITE.fetch("http://x/big.bin")];
      return new Response(`${await answers[0].text()} ${(await answers[1].arrayBuffer()).byteLength}`);
    } }"""
    atoll.deploy("as-caller", script, bindings=[{"type": "service", "name": "SITE", "service": "as-target"}])
    assert atoll.get("as-caller").text == f"about {len(BIG)}"


def test_a_rollback_brings_the_files_back(atoll: Atoll) -> None:
    deploy_site(atoll, "as-back", {"/index.html": b"one"})
    deploy_site(atoll, "as-back", {"/index.html": b"two", "/new.txt": b"new"})
    assert (atoll.get("as-back").body, atoll.get("as-back", "/new.txt").body) == (b"two", b"new")
    assert atoll.control("POST", "/api/workers/as-back/rollback", {}).status == 200
    assert (atoll.get("as-back").body, atoll.get("as-back", "/new.txt").status) == (b"one", 404)
    atoll.deploy("as-back", WORKER)  # code alone: the files stay
    assert (atoll.get("as-back").body, atoll.get("as-back", "/x").text) == (b"one", "worker /x")
    atoll.control("PUT", "/api/workers/as-back", {"assets": None})
    assert atoll.get("as-back").text == "worker /"


def test_only_missing_files_are_asked_for_and_a_cut_upload_goes_on(atoll: Atoll) -> None:
    files = {f"/{n}.bin": os.urandom(700_000) for n in range(5)}
    assert len(add_manifest(atoll, files)["missing"]) == 5
    body = packed(files.values())
    incoming = Path(str(atoll.settings["data"]), "static", ".incoming")
    with atoll.connect() as client:  # three files and a half, then the client leaves
        head = f"PUT /api/assets/files HTTP/1.1\r\nHost: localhost:{atoll.port}\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body[: 7 * len(body) // 10])
        Atoll.wait_until(lambda: list(incoming.glob("*/2")))  # the node has taken the first two
    Atoll.wait_until(lambda: len(add_manifest(atoll, files)["missing"]) <= 3)
    assert len(add_manifest(atoll, files)["missing"]) >= 2
    refused = atoll.control(
        "POST", "/api/workers", {"name": "as-cut", "assets": {"manifest": add_manifest(atoll, files)["manifest"]}}
    )
    assert refused.status == 409 and refused.json["error"]["code"] == 19033
    deploy_site(atoll, "as-cut", files)
    assert all(atoll.get("as-cut", path).body == content for path, content in files.items())


def test_uploads_that_are_refused(atoll: Atoll) -> None:
    files = {"/a.txt": b"right content of as-refused"}
    content = files["/a.txt"]
    unknown = upload(atoll, packed([b"nobody asked for this"]))
    assert unknown.status == 400 and "no manifest of this tenant waits" in unknown.json["error"]["message"]
    add_manifest(atoll, files)
    head = packed([content])[:40]
    wrong = upload(atoll, head + b"wrong content of as-refused")
    assert wrong.status == 400 and "changed while it was sent" in wrong.json["error"]["message"]
    longer = upload(atoll, head[:32] + (len(content) + 1).to_bytes(8) + content + b"x")
    assert longer.status == 400 and "not 28" in longer.json["error"]["message"]
    short = upload(atoll, packed([content])[:-1])
    assert short.status == 400 and "ends inside a file" in short.json["error"]["message"]
    assert add_manifest(atoll, files)["missing"] == [sha256(content)]
    assert upload(atoll, packed([content])).json == {"files": 1, "bytes": len(content)}
    assert upload(atoll, packed([content])).json == {"files": 0, "bytes": 0}  # it is there
    assert add_manifest(atoll, files)["missing"] == []


@pytest.mark.parametrize(
    "path", ["", "a", "/../etc/passwd", "/a/../b", "/a//b", "/./a", "/a\\b", "/a\0b", "/a\nb", "/" + "a" * 1_024, "/a/"]
)
def test_paths_that_no_file_may_have(atoll: Atoll, path: str) -> None:
    answer = atoll.control("POST", "/api/assets/manifests", manifest_of({path: b"x"}))
    assert answer.status == 400 and "cannot be named" in answer.json["error"]["message"]


def test_manifests_that_are_refused(atoll: Atoll) -> None:
    good = sha256(b"x")
    for files, said in (
        ({}, "no files"),
        ({"/a": {"hash": "xyz", "size": 1}}, "SHA-256"),
        ({"/a": {"hash": good.upper(), "size": 1}}, "SHA-256"),
        ({"/a": {"hash": good, "size": -1}}, "limit"),
        ({"/a": {"hash": good, "size": 26 << 20}}, "limit"),
        ({"/a": {"hash": good, "size": 1}, "/b": {"hash": good, "size": 2}}, "another size"),
        ({"/a": {"hash": good}}, "does not fit"),
    ):
        answer = atoll.control("POST", "/api/assets/manifests", {"files": files})
        assert answer.status == 400 and said in answer.json["error"]["message"], answer.text
    for assets, said in (
        ({"manifest": "0" * 64}, "there is no manifest"),
        ({"manifest": "../x"}, "`manifest` is"),
        ({"manifest": "0" * 64, "html_handling": "x"}, "html_handling"),
        ({"manifest": "0" * 64, "wat": 1}, "wat"),
    ):
        answer = atoll.control("POST", "/api/workers", {"name": "as-bad", "assets": assets})
        assert answer.status in (400, 409) and said in answer.json["error"]["message"], answer.text


def test_a_kill_during_an_upload_loses_nothing_that_was_there(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)
    deploy_site(node, "site", {"/index.html": b"before"})
    files = {"/index.html": b"after", **{f"/{n}.bin": os.urandom(200_000) for n in range(20)}}
    add_manifest(node, files)
    body = packed(files.values())
    with node.connect() as client:
        client.sendall(
            f"PUT /api/assets/files HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        )
        client.sendall(body[: len(body) - 10])
        node.stop(signal.SIGKILL)
    node.start()
    assert node.get("site").body == b"before"
    deploy_site(node, "site", files)
    assert node.get("site").body == b"after"
    assert all(node.get("site", path).body == content for path, content in files.items() if path != "/index.html")
    assert not list(Path(str(node.settings["data"]), "static", ".incoming").iterdir())


def test_a_kill_during_a_deploy_leaves_the_old_files_or_the_new_ones(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)
    deploy_site(node, "site", {"/index.html": b"old", "/v.txt": b"old"})
    new = {"/index.html": b"new", "/v.txt": b"new"}
    found = add_manifest(node, new)
    upload(node, packed(new.values()))

    def deploy() -> None:
        try:
            node.control("PUT", "/api/workers/site", {"assets": {"manifest": found["manifest"]}})
        except OSError:
            pass  # killed before it answered

    sender = threading.Thread(target=deploy)
    sender.start()
    node.stop(signal.SIGKILL)
    sender.join()
    node.start()
    assert (node.get("site").body, node.get("site", "/v.txt").body) in ((b"old", b"old"), (b"new", b"new"))


def test_a_client_that_leaves_or_stalls_costs_no_descriptor(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1, idle_timeout=1)
    deploy_site(node, "site", {"/big.bin": os.urandom(20 << 20)})

    def descriptors() -> int:
        return len(os.listdir(f"/proc/{node.pid}/fd"))

    assert len(node.get("site", "/big.bin").body) == 20 << 20
    before = descriptors()
    request = f"GET /big.bin HTTP/1.1\r\nHost: {node.host('site')}\r\n\r\n".encode()
    clients = [node.connect() for _ in range(10)]
    for client in clients:
        client.sendall(request)
        assert client.recv(1000).startswith(b"HTTP/1.1 200 OK")
    assert descriptors() > before + 10
    for client in clients[:5]:
        client.close()  # these leave, the others do not read on
    Atoll.wait_until(lambda: descriptors() <= before + 2, 30)
    for client in clients[5:]:
        client.close()
    assert node.get("site", "/big.bin").status == 200


def test_pipelined_requests_are_answered_in_order(atoll: Atoll) -> None:
    deploy_site(atoll, "as-pipe", SITE, WORKER)
    paths = ["/", "/app.js", "/worker", "/big.bin", "/about", "/big.bin", "/worker"] * 3
    bodies = {"/": PAGE, "/app.js": SCRIPT, "/worker": b"worker /worker", "/big.bin": BIG, "/about": b"about"}
    with atoll.connect() as client:
        client.sendall(
            b"".join(f"GET {path} HTTP/1.1\r\nHost: {atoll.host('as-pipe')}\r\n\r\n".encode() for path in paths)
        )
        stream = client.makefile("rb")
        for path in paths:
            assert stream.readline() == b"HTTP/1.1 200 OK\r\n"
            length = 0
            while (line := stream.readline()) != b"\r\n":
                if line.startswith(b"content-length: "):
                    length = int(line.split()[1])
            assert stream.read(length) == bodies[path]


def test_answers_are_counted(atoll: Atoll) -> None:
    deploy_site(atoll, "as-counted", SITE)
    for path in ("/", "/about.html", "/none"):
        atoll.get("as-counted", path)
    text = atoll.control("GET", "/metrics").text
    for status in ("2xx", "3xx", "4xx"):
        assert f'atoll_asset_requests_total{{status="{status}",tenant="default",worker="as-counted"}} 1\n' in text
    assert f'atoll_asset_bytes_total{{tenant="default",worker="as-counted"}} {len(PAGE)}\n' in text
