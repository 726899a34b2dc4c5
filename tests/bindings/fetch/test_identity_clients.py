"""A response in a content coding goes only to clients that accept that coding; others get it decoded."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from http.client import HTTPConnection

import brotli
import pytest
from backports import zstd

from tests.running import Answer, Atoll
from tests.upstream import Upstream

Run = Callable[..., Answer]
SIZE = 400_000
CONTENT = (bytes(range(251)) * (SIZE // 251 + 1))[:SIZE]
DECODE: dict[str | None, Callable[[bytes], bytes]] = {
    None: bytes,
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "br": brotli.decompress,
    "zstd": zstd.decompress,
}
CODINGS = ["gzip", "deflate", "br", "zstd"]

# The ways in which a worker passes on a response.
WAYS = {
    "as it is": "return r;",
    "rebuilt": "return new Response(r.body, r);",
    "with headers of its own": "const h = new Headers(r.headers); h.set('x-a', '1'); return new Response(r.body, { headers: h });",
    "cloned": "ctx.waitUntil(r.clone().text()); return r;",
    "the clone": "const copy = r.clone(); ctx.waitUntil(r.text()); return copy;",
    "through a transform": "return new Response(r.body.pipeThrough(new TransformStream()), r);",
    "read and rebuilt": "return new Response(await r.arrayBuffer(), r);",
    "manually": "return new Response(r.body, { headers: r.headers, encodeBody: 'manual' });",
    "cached": """const key = "http://cache/" + CODING;
      const headers = new Headers(r.headers);
      headers.set("cache-control", "max-age=60");
      await caches.default.put(key, new Response(r.body, { headers }));
      return caches.default.match(key);""",
}


@pytest.mark.parametrize(
    "accepted", ["identity", None, "gzip, deflate, br, zstd", "CODING;q=0, *", "CODING;q=0.1", "*", "*;q=0", "other"]
)
@pytest.mark.parametrize("way", WAYS)
def test_a_client_can_always_read_a_passed_on_response(
    node: Atoll, upstream: Upstream, way: str, accepted: str | None
) -> None:
    name = f"coded-{list(WAYS).index(way)}"
    source = f"""export default {{ async fetch(request, env, ctx) {{
      const CODING = new URL(request.url).pathname.slice(1);
      const r = await fetch("{upstream.url}/coded-bytes/" + CODING + "/{SIZE}", {{ headers: {{ "accept-encoding": CODING }} }});
      {WAYS[way]}
    }} }};"""
    node.deploy(name, source, limits={"cpu_ms": 2000})
    for coding in CODINGS:
        header = None if accepted is None else accepted.replace("CODING", coding)
        status, headers, body = ask(node, name, f"/{coding}", header)
        told = headers.get("content-encoding")
        assert status == 200 and DECODE[told](body) == CONTENT, (coding, told)
        if header in (None, "identity", "*;q=0", "other") or header == f"{coding};q=0, *":
            assert told is None, coding
        if way in ("as it is", "rebuilt") and told is None and coding != "br":
            assert "accept-encoding" in (headers.get("vary") or "").lower()
        if way in ("as it is", "rebuilt") and header in ("*", f"{coding};q=0.1"):
            assert told == coding, "a client that accepts the coding gets the body unchanged"
            assert headers.get("content-length") == str(len(body))


def ask(
    node: Atoll, name: str, path: str, accepted: str | None, method: str = "GET"
) -> tuple[int, dict[str, str], bytes]:
    """Sends a request without the Accept-Encoding that http.client adds by default."""
    connection = HTTPConnection("127.0.0.1", node.port, timeout=20)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", node.host(name))
    if accepted is not None:
        connection.putheader("Accept-Encoding", accepted)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {key.lower(): value for key, value in answer.getheaders()}, body


MADE = """
const headers = (coding) => ({ "content-encoding": coding, etag: '"abc"', vary: "Origin" });
export default { async fetch(request) {
  const [, how, coding] = new URL(request.url).pathname.split("/");
  if (how === "automatic") return new Response("some text", { headers: headers(coding) });
  const format = coding === "x-gzip" ? "gzip" : coding;
  const packed = new Blob(["some text"]).stream().pipeThrough(new CompressionStream(format));
  if (how === "partial") return new Response(packed, { status: 206, headers: headers(coding), encodeBody: "manual" });
  return new Response(packed, { headers: headers(coding), encodeBody: "manual" });
} };
"""


@pytest.mark.parametrize(
    "path", ["/automatic/gzip", "/manual/gzip", "/manual/deflate", "/manual/x-gzip", "/automatic/br"]
)
def test_a_body_encoded_by_a_worker_is_decoded_for_clients_that_cannot(node: Atoll, path: str) -> None:
    node.deploy("encodes", MADE)
    for accepted in (None, "identity", "gzip;q=0, deflate;q=0"):
        _, headers, body = ask(node, "encodes", path, accepted)
        assert body == b"some text" and "content-encoding" not in headers
        assert headers["etag"] == 'W/"abc"'
        assert headers["vary"] == ("Origin" if path.endswith("br") else "Origin, Accept-Encoding")
    _, headers, body = ask(node, "encodes", path, "gzip, deflate, br")
    assert headers.get("content-encoding") == (None if path.endswith("br") else path.split("/")[2])
    decode = DECODE[(headers.get("content-encoding") or "").removeprefix("x-") or None]
    assert decode(body) == b"some text"
    assert headers["etag"] == ('W/"abc"' if path.endswith("br") else '"abc"')


def test_a_range_of_an_encoded_body_is_not_decoded(node: Atoll) -> None:
    node.deploy("encodes", MADE)
    status, headers, body = ask(node, "encodes", "/partial/gzip", "identity")
    assert status == 206 and headers["content-encoding"] == "gzip" and gzip.decompress(body) == b"some text"


def test_a_head_request_has_the_headers_of_a_get(node: Atoll, upstream: Upstream) -> None:
    node.deploy("encodes", MADE)
    for accepted in ("identity", "gzip"):
        _, got, _ = ask(node, "encodes", "/manual/gzip", accepted)
        _, headed, body = ask(node, "encodes", "/manual/gzip", accepted, "HEAD")
        assert body == b""
        for name in ("content-encoding", "etag", "vary"):
            assert headed.get(name) == got.get(name), (accepted, name)
