"""Public buckets and CORS, against a real node: who may read what, where, and which pages."""

from __future__ import annotations

import hashlib
import io
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from atoll.bindings.r2.around.cors import Cors, CorsRule, allowed, checked_cors
from atoll.errors import InvalidArgument
from tests.bindings.r2.test_r2_api import code
from tests.bindings.r2.test_s3 import Client, client_of, keys_of, names, refused, s3
from tests.cli.test_projects import run
from tests.running import Answer, Atoll

__all__ = ["names", "s3"]  # fixtures

LARGE = bytes(range(256)) * 12_000  # 3 MB: many pieces
PAGE = {"Origin": "https://page.example"}


def made(atoll: Atoll, bucket: str, tenant: str = "default") -> str:
    """A new public bucket; returns its host."""
    headers = {"Content-Type": "application/json", "X-Atoll-Tenant": tenant}
    node = f"localhost:{atoll.port}"
    assert atoll.request("POST", node, "/api/r2", json.dumps({"name": bucket}), headers).status == 201
    assert atoll.request("GET", node, f"/api/r2/{bucket}/public", None, headers).json == {"public": False, "url": ""}
    shown = atoll.request("PUT", node, f"/api/r2/{bucket}/public", None, headers)
    assert shown.status == 200 and shown.json["public"]
    return urlsplit(shown.json["url"]).netloc


def get(atoll: Atoll, host: str, path: str, method: str = "GET", **headers: str) -> Answer:
    return atoll.request(method, host, path, None, {name.replace("_", "-"): value for name, value in headers.items()})


def test_anybody_reads_a_public_bucket_until_it_is_private_again(atoll: Atoll, s3: Client) -> None:
    host = made(atoll, "open")
    assert host.startswith("pub-") and host.endswith(f".buckets.localhost:{atoll.port}")
    s3.put_object(Bucket="open", Key="dir/ü.html", Body=b"<p>page", ContentType="text/html", CacheControl="max-age=5")
    s3.put_object(Bucket="open", Key="large", Body=LARGE)
    path = "/" + quote("dir/ü.html")
    page = get(atoll, host, path + "?ignored=1")
    assert (page.status, page.body, page.headers["content-type"]) == (200, b"<p>page", "text/html")
    assert page.headers["cache-control"] == "max-age=5" and page.headers["x-content-type-options"] == "nosniff"
    etag, date = page.headers["etag"], page.headers["last-modified"]
    assert etag == f'"{hashlib.md5(b"<p>page").hexdigest()}"'
    large = get(atoll, host, "/large")
    assert large.body == LARGE and large.headers["accept-ranges"] == "bytes"
    assert large.headers["content-type"] in ("binary/octet-stream", "application/octet-stream")
    head = get(atoll, host, "/large", "HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(LARGE)))
    # By the header that fails
    assert get(atoll, host, path, If_None_Match=etag).status == 304
    assert get(atoll, host, path, If_Modified_Since=date).status == 304
    assert get(atoll, host, path, If_Match='"x"').status == 412
    assert get(atoll, host, path, If_Unmodified_Since="Mon, 01 Jan 2001 00:00:00 GMT").status == 412
    both = get(atoll, host, path, If_Match=etag, If_None_Match=etag)
    assert (both.status, both.body, both.headers["etag"]) == (304, b"", etag)
    assert get(atoll, host, path, If_Match=etag, If_Unmodified_Since=date).status == 200
    # Nothing is listed, nothing is written
    for nothing in ("/", "/dir/", "/none", "/%ff", "/" + "k" * 1025):
        assert get(atoll, host, nothing).status == 404
    assert get(atoll, host, "/", "HEAD").body == b""
    put = get(atoll, host, "/new", "PUT")
    assert put.status == 405 and put.headers["allow"] == "GET, HEAD, OPTIONS"
    # Private again
    assert atoll.control("DELETE", "/api/r2/open/public").status == 204
    assert get(atoll, host, path).status == 404
    assert made_again(atoll, "open") != host, "an old link does not come back to life"


def made_again(atoll: Atoll, bucket: str) -> str:
    return urlsplit(atoll.control("PUT", f"/api/r2/{bucket}/public").json["url"]).netloc


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_ranges(atoll: Atoll, s3: Client, method: str) -> None:
    host = made(atoll, f"ranges-{method.lower()}")
    s3.put_object(Bucket=f"ranges-{method.lower()}", Key="k", Body=b"0123456789")

    def part(wanted: str, **headers: str) -> tuple[int, bytes, str | None, str | None]:
        answer = get(atoll, host, "/k", method, Range=wanted, **headers)
        return answer.status, answer.body, answer.headers.get("content-range"), answer.headers.get("content-length")

    def content(text: bytes) -> bytes:
        return text if method == "GET" else b""

    assert part("bytes=2-4") == (206, content(b"234"), "bytes 2-4/10", "3")
    assert part("bytes=8-") == (206, content(b"89"), "bytes 8-9/10", "2")
    assert part("bytes=-3") == (206, content(b"789"), "bytes 7-9/10", "3")
    assert part("bytes=0-1,4-5") == (200, content(b"0123456789"), None, "10")
    assert part("bytes=10-")[::2] == (416, "bytes */10") and part("bytes=-0")[0] == 416
    etag = get(atoll, host, "/k", "HEAD").headers["etag"]
    assert part("bytes=2-4", If_Range=etag)[0] == 206 and part("bytes=2-4", If_Range='"old"')[0] == 200


def test_a_client_that_does_not_read_holds_nothing_up(atoll: Atoll, s3: Client) -> None:
    host = made(atoll, "slow")
    s3.upload_fileobj(io.BytesIO(LARGE * 8), "slow", "large")
    lazy = [socket.create_connection(("127.0.0.1", atoll.port)) for _ in range(4)]
    for each in lazy:
        each.sendall(f"GET /large HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert get(atoll, host, "/large", Range="bytes=0-9").body == LARGE[:10]
    lazy[0].settimeout(20)
    received = 0
    while received < 24_000_000:  # and it gets all of it once it reads
        piece = lazy[0].recv(1 << 20)
        assert piece
        received += len(piece)
    for each in lazy:
        each.close()


def test_a_tenant_cannot_take_the_host_of_a_bucket_nor_read_what_is_private(
    new_atoll: Callable[..., Atoll],
) -> None:
    node = new_atoll(engines=1)
    assert node.control("POST", "/api/tenants", {"name": "other"}).status == 201
    host, other = made(node, "mine"), made(node, "mine", "other")
    assert host != other, "buckets of the same name have hosts of their own"
    script = "export default { fetch() { return new Response('stolen') } }"
    bare = host.rpartition(":")[0]
    for route in (f"{bare}/*", "buckets.localhost/*", "x.buckets.localhost"):
        answer = node.control("POST", "/api/workers", {"name": "thief", "script": script, "routes": [route]})
        assert answer.status in (400, 403, 409), (route, answer.text)
    assert node.control("POST", "/api/workers", {"name": "buckets", "script": script}).status == 400
    node.deploy("wide", script, routes=["*.localhost/*"])  # by the operator: it gets the hosts that nobody has
    assert get(node, host, "/key").status == 404 and b"stolen" not in get(node, host, "/key").body
    for unknown in (f"pub-0123456789abcdef.buckets.localhost:{node.port}", f"buckets.localhost:{node.port}"):
        assert b"no public bucket" in get(node, unknown, "/key").body
    # A bucket of the same name, made after it was deleted, is private.
    assert node.control("DELETE", "/api/r2/mine").status == 204
    assert get(node, host, "/key").status == 404
    node.control("POST", "/api/r2", {"name": "mine"})
    assert node.control("GET", "/api/r2/mine/public").json["public"] is False
    assert node.control("GET", "/api/r2/mine/cors").json == {"rules": []}
    # Both settings survive a restart; the domain can be turned off.
    node.stop()
    node.start()
    assert b"no such object" in get(node, other, "/key").body


RULES = [
    {
        "AllowedOrigins": ["https://*.example"], "AllowedMethods": ["GET", "PUT"], "AllowedHeaders": ["x-amz-*"],
        "ExposeHeaders": ["ETag"], "MaxAgeSeconds": 60, "ID": "pages",
    },
    {"AllowedOrigins": ["*"], "AllowedMethods": ["HEAD"]},
]  # fmt: skip
PREFLIGHT = PAGE | {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "X-Amz-Date, x-amz-x"}


def test_cors_rules_are_set_with_boto3_and_hold_on_both_hosts(atoll: Atoll, s3: Client) -> None:
    host = made(atoll, "cors")
    assert refused(s3.get_bucket_cors, Bucket="cors") == (404, "NoSuchCORSConfiguration")
    denied = atoll.request("OPTIONS", host, "/k", None, PREFLIGHT)
    assert denied.status == 403 and "access-control-allow-origin" not in denied.headers
    s3.put_bucket_cors(Bucket="cors", CORSConfiguration={"CORSRules": RULES})
    assert s3.get_bucket_cors(Bucket="cors")["CORSRules"] == RULES
    s3.put_object(Bucket="cors", Key="k", Body=b"v")
    link = urlsplit(s3.generate_presigned_url("put_object", Params={"Bucket": "cors", "Key": "k"}))
    endpoint, path = f"s3.localhost:{atoll.port}", f"{link.path}?{link.query}"
    for where, target in ((host, "/k"), (endpoint, path), (endpoint, "/cors/k")):
        asked = atoll.request("OPTIONS", where, target, None, PREFLIGHT)
        assert asked.status in (200, 204), asked.text
        assert asked.headers["access-control-allow-origin"] == PAGE["Origin"]
        assert asked.headers["access-control-allow-methods"] == "GET, PUT"
        assert asked.headers["access-control-allow-headers"] == "x-amz-date, x-amz-x"
        assert asked.headers["access-control-max-age"] == "60" and "Origin" in asked.headers["vary"]
        for change in ({"Origin": "https://page.other"}, {"Access-Control-Request-Headers": "x-other"}):
            assert atoll.request("OPTIONS", where, target, None, PREFLIGHT | change).status == 403
        assert atoll.request("OPTIONS", where, target, None, PAGE).status == 403
    stored = atoll.request("PUT", endpoint, path, b"new", PAGE)
    assert stored.status == 200 and stored.headers["access-control-allow-origin"] == PAGE["Origin"]
    assert stored.headers["access-control-expose-headers"] == "ETag"
    wrong = atoll.request("PUT", endpoint, path + "x", b"new", PAGE)
    assert wrong.status == 403 and wrong.headers["access-control-allow-origin"] == PAGE["Origin"], "a page can read it"
    read = atoll.request("GET", host, "/k", None, PAGE)
    assert read.body == b"new" and read.headers["access-control-allow-origin"] == PAGE["Origin"]
    plain = atoll.request("GET", host, "/k")
    assert "access-control-allow-origin" not in plain.headers and plain.headers["vary"] == "Origin"
    head = atoll.request("HEAD", host, "/k", None, {"Origin": "https://any.where"})
    assert head.headers["access-control-allow-origin"] == "*"
    unknown = {"CORSRules": [{"AllowedOrigins": ["*"], "AllowedMethods": ["PATCH"]}]}
    assert refused(s3.put_bucket_cors, Bucket="cors", CORSConfiguration=unknown)[0] == 400
    s3.delete_bucket_cors(Bucket="cors")
    assert atoll.request("OPTIONS", host, "/k", None, PREFLIGHT).status == 403
    reader = client_of(atoll, keys_of(atoll, bucket="cors", read_only=True))
    refusal = refused(reader.put_bucket_cors, Bucket="cors", CORSConfiguration={"CORSRules": RULES})
    assert refusal == (403, "AccessDenied")
    reader.close()
    assert refused(s3.put_bucket_cors, Bucket="no-such", CORSConfiguration={"CORSRules": RULES})[1] == "NoSuchBucket"


@pytest.mark.parametrize(
    "rule",
    [
        {"allowed_origins": [], "allowed_methods": ["GET"]},
        {"allowed_origins": ["*"], "allowed_methods": []},
        {"allowed_origins": ["https://*.*"], "allowed_methods": ["GET"]},
        {"allowed_origins": ["a\r\nb"], "allowed_methods": ["GET"]},
        {"allowed_origins": ["*"], "allowed_methods": ["get"]},
        {"allowed_origins": ["*"], "allowed_methods": ["GET"], "expose_headers": ["*"]},
        {"allowed_origins": ["*"], "allowed_methods": ["GET"], "allowed_headers": ["a b"]},
        {"allowed_origins": ["*"], "allowed_methods": ["GET"], "max_age_seconds": -1},
        {"allowed_origins": ["*"] * 101, "allowed_methods": ["GET"]},
    ],
)
def test_cors_rules_that_are_wrong(rule: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        checked_cors(Cors([CorsRule(**rule)]))


def test_a_preflight_cannot_be_made_costly_by_the_rules_of_a_bucket() -> None:
    """Anybody may send one, and it compares each header that it announces with those of every rule."""
    for many in (
        [CorsRule(["*"], ["PUT"], [f"x{number}*" for number in range(50)]) for _ in range(3)],
        [CorsRule(["*"], ["PUT"], ["x" * 300] * 100) for _ in range(3)],
    ):
        with pytest.raises(InvalidArgument):
            checked_cors(Cors(many))
    cors = checked_cors(Cors([CorsRule(["*"], ["PUT"], [f"x{number}" for number in range(99)])] * 50))
    names = ", ".join([*(f"X{number}" for number in range(99)), "other"])
    asked = {"origin": "https://a.example", "access-control-request-method": "PUT"}
    began = time.process_time()
    assert allowed([cors], asked | {"access-control-request-headers": names}) is None
    assert time.process_time() - began < 0.05
    fitting = allowed([cors], asked | {"access-control-request-headers": "X1, x98"})
    assert fitting is not None and fitting["access-control-allow-headers"] == "x1, x98"


def test_the_parts_of_an_origin_around_a_star_do_not_overlap() -> None:
    cors = Cors([CorsRule(["https://a*a.example"], ["GET"])])
    asked = {"access-control-request-method": "GET"}
    assert allowed([cors], asked | {"origin": "https://aa.example"}) is not None
    assert allowed([cors], asked | {"origin": "https://a.example"}) is None
    assert allowed([cors], asked) is None


def test_from_the_command_line(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    run(tmp_path, "r2", "bucket", "create", "typed", **node)
    assert "not public" in run(tmp_path, "r2", "bucket", "public", "get", "typed", **node).stderr
    shown = run(tmp_path, "r2", "bucket", "public", "enable", "typed", "--yes", "--json", **node).stdout
    assert run(tmp_path, "r2", "bucket", "public", "get", "typed", **node).stdout.strip() == json.loads(shown)["url"]
    (tmp_path / "cors.json").write_text(
        '{"rules": [{"allowed": {"origins": ["https://a.b"], "methods": ["GET"]}, "maxAgeSeconds": 9}]}'
    )
    run(tmp_path, "r2", "bucket", "cors", "set", "typed", "--file", "cors.json", **node)
    [rule] = atoll.control("GET", "/api/r2/typed/cors").json["rules"]
    assert rule == {"allowed_origins": ["https://a.b"], "allowed_methods": ["GET"], "max_age_seconds": 9}
    assert "https://a.b" in run(tmp_path, "r2", "bucket", "cors", "list", "typed", **node).stdout
    (tmp_path / "bad.json").write_text("[1]")
    failed = run(tmp_path, "r2", "bucket", "cors", "set", "typed", "--file", "bad.json", code=1, **node)
    assert "hint:" in failed.stderr
    run(tmp_path, "r2", "bucket", "cors", "delete", "typed", **node)
    run(tmp_path, "r2", "bucket", "public", "disable", "typed", **node)
    assert atoll.control("GET", "/api/r2/typed/public").json["public"] is False
    answer = atoll.control("PUT", "/api/r2/typed/cors", {"rules": [{"allowed_origins": ["*"], "what": 1}]})
    assert answer.status == 400 and code(answer)
