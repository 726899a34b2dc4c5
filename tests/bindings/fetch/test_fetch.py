"""fetch() as a worker sees it: requests, responses, bodies in both directions, redirects, codings, aborting."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable

import pytest

from tests.running import Answer, Atoll
from tests.upstream import Upstream

Run = Callable[..., Answer]


# --- requests ---


@pytest.mark.parametrize(
    ("init", "line", "body"),
    [
        ("{}", "GET", b""),
        ('{ method: "POST", body: "text" }', "POST", b"text"),
        ('{ method: "put", body: new Uint8Array([1, 2, 3]) }', "PUT", b"\1\2\3"),
        ('{ method: "PURGE" }', "PURGE", b""),
        ('{ method: "DELETE", body: new URLSearchParams({ a: "b c" }) }', "DELETE", b"a=b+c"),
        ('{ method: "POST", body: new Blob(["x".repeat(200000)]) }', "POST", b"x" * 200_000),
        ('{ method: "POST", body: new Uint8Array(3000000) }', "POST", bytes(3_000_000)),
    ],
)
def test_methods_and_bodies_arrive(run: Run, upstream: Upstream, init: str, line: str, body: bytes) -> None:
    assert run(f"return fetch(UP + '/echo', {init})").body == body
    assert upstream.last().line == f"{line} /echo HTTP/1.1"
    assert upstream.last().get("content-length") == (str(len(body)) if body or line == "POST" else None)


def test_connection_headers_of_a_worker_are_ignored(run: Run, upstream: Upstream) -> None:
    run("""return fetch(UP + "/a?b=%20", { method: "POST", body: "12345", headers: [["X-Mine", "1"], ["x-mine", "2"],
      ["Host", "evil.example"], ["Connection", "close, x-mine"], ["Content-Length", "2"], ["Transfer-Encoding", "gzip"],
      ["TE", "trailers"], ["Upgrade", "h2c"], ["Expect", "100-continue"], ["CF-EW-Via", "0"], ["cf-worker", "other"]] })""")
    seen = upstream.last()
    names = [name.lower() for name, _ in seen.headers]
    assert seen.line == "POST /a?b=%20 HTTP/1.1"
    assert seen.get("host") == f"127.0.0.1:{upstream.port}"
    assert [value for name, value in seen.headers if name == "x-mine"] == ["1", "2"]
    assert seen.get("content-length") == "5"
    assert seen.get("cf-ew-via") == "1" and str(seen.get("cdn-loop")).startswith("atoll; loops=1; id=")
    assert str(seen.get("cf-worker")).endswith(".localhost")
    assert not {"connection", "transfer-encoding", "te", "upgrade", "expect"} & set(names)
    assert len(names) == len(set(names)) + 1  # only x-mine comes twice


def test_header_bytes_are_sent_and_received_unchanged(run: Run, upstream: Upstream) -> None:
    answer = run('const r = await fetch(UP + "/headers", { headers: { "x-latin": "caf\\xe9" } }); return r')
    assert b"x-latin: caf\xe9" in upstream.last().head
    assert answer.status == 200


def test_a_streamed_body_is_chunked_and_one_of_known_length_is_not(run: Run, upstream: Upstream) -> None:
    assert (
        run("""const { readable, writable } = new TransformStream();
      ctx.waitUntil((async () => { const w = writable.getWriter();
        for (let i = 0; i < 5; i++) await w.write(new TextEncoder().encode("part" + i)); await w.close(); })());
      return fetch(UP + "/echo", { method: "POST", body: readable, duplex: "half" })""").text
        == "part0part1part2part3part4"
    )
    assert upstream.last().get("transfer-encoding") == "chunked"
    assert run("""const { readable, writable } = new FixedLengthStream(6);
      ctx.waitUntil((async () => { const w = writable.getWriter(); await w.write(new Uint8Array(6)); await w.close(); })());
      return fetch(UP + "/echo", { method: "POST", body: readable, duplex: "half" })""").body == bytes(6)
    assert upstream.last().get("content-length") == "6"


def test_a_request_is_passed_on_unchanged(run: Run, upstream: Upstream) -> None:
    data = bytes(range(256)) * 4000
    answer = run(
        "return fetch(new Request(UP + '/echo', request))", data=data, headers={"X-A": "b", "Content-Type": "x/y"}
    )
    assert answer.body == data
    seen = upstream.last()
    assert (seen.get("x-a"), seen.get("content-type"), seen.get("content-length")) == ("b", "x/y", str(len(data)))


@pytest.mark.parametrize("how", ["fetch(UP + '/echo', request)", "fetch(new Request(UP + '/echo', request))"])
def test_a_get_with_a_body_is_passed_on_with_it(node: Atoll, upstream: Upstream, how: str) -> None:
    """No standard forbids it, and search engines use it."""
    node.deploy("get-body", f"const UP = '{upstream.url}'; export default {{ fetch(request) {{ return {how} }} }}")
    assert node.request("GET", node.host("get-body"), "/", b"a query").text == "a query"
    assert upstream.last().line == "GET /echo HTTP/1.1" and upstream.last().get("content-length") == "7"
    large = bytes(300_000)
    assert node.request("GET", node.host("get-body"), "/", large).body == large


def test_a_body_shorter_than_its_length_is_only_an_error(run: Run) -> None:
    answer = run("""const body = new ReadableStream({ start(c) { c.enqueue(new Uint8Array(3)); c.close(); } });
      try { await fetch(UP + "/echo", { method: "POST", body, duplex: "half", headers: { "content-length": "10" } }); }
      catch (error) { return new Response(`${error}`); }""")
    assert "not as long as its Content-Length" in answer.text


def test_a_body_that_breaks_ends_the_fetch_with_its_error(run: Run) -> None:
    answer = run("""const body = new ReadableStream({ start(c) { c.enqueue(new Uint8Array(3)); }, pull(c) { c.error(new RangeError("mine")); } });
      try { await fetch(UP + "/echo", { method: "POST", body, duplex: "half" }); } catch (error) { return new Response(`${error}`); }""")
    assert answer.text == "RangeError: mine"


def test_an_answer_before_the_end_of_the_upload_is_accepted(run: Run) -> None:
    answer = run("""let sent = 0; const body = new ReadableStream({ pull(c) { sent++; c.enqueue(new Uint8Array(65536)); } });
      const r = await fetch(UP + "/early", { method: "POST", body, duplex: "half" });
      return new Response(r.status + " " + await r.text())""")
    assert answer.text == "413 no need"


# --- responses ---


def test_a_response_has_the_status_and_headers_of_the_server(run: Run) -> None:
    answer = run("""const r = await fetch(UP + "/status/418#part");
      return Response.json([r.status, r.statusText, r.ok, r.url.slice(UP.length), r.redirected, await r.text(), r.bodyUsed])""")
    assert answer.json == [418, "Very Special", False, "/status/418", False, "status", True]


@pytest.mark.parametrize(
    ("path", "text"),
    [("chunked", "hello world"), ("until-close", "until the end"), ("early-hints", "final"), ("status/204", "")],
)
def test_every_way_to_end_a_body(run: Run, path: str, text: str) -> None:
    assert run(f"return new Response(await (await fetch(UP + '/{path}')).text())").text == text


def test_cookies_stay_apart_and_headers_are_immutable(run: Run) -> None:
    answer = run("""const r = await fetch(UP + "/cookies"); let error = "";
      try { r.headers.set("a", "b"); } catch (e) { error = e.name; }
      return Response.json([r.headers.getSetCookie(), error])""")
    assert answer.json == [["a=1", "b=2, c"], "TypeError"]


def test_head_has_no_body(run: Run) -> None:
    answer = run("""const r = await fetch(UP + "/bytes/1000", { method: "HEAD" });
      return Response.json([r.headers.get("content-length"), r.body, await r.text()])""")
    assert answer.json == ["1000", None, ""]


def test_a_response_can_be_read_before_it_has_ended(run: Run, upstream: Upstream) -> None:
    upstream.release.clear()
    answer = run("""const r = await fetch(UP + "/wait"); const reader = r.body.getReader();
      const first = new TextDecoder().decode((await reader.read()).value);
      const rest = reader.read().then(({ value }) => new TextDecoder().decode(value));
      return Response.json([first, await Promise.race([rest, new Promise((r) => setTimeout(() => r("not yet"), 50))])])""")
    upstream.release.set()
    assert answer.json == ["first", "not yet"]


def test_a_large_response_passes_through_completely(run: Run) -> None:
    expected = bytes(range(256)) * (5_000_000 // 256) + bytes(range(256))[: 5_000_000 % 256]
    assert run("return fetch(UP + '/bytes/5000000')").body == expected
    assert run("const r = await fetch(UP + '/bytes/5000000'); return new Response(r.body, r)").body == expected
    assert len(run("return new Response(await (await fetch(UP + '/bytes/5000000')).arrayBuffer())").body) == 5_000_000


def test_a_server_is_not_read_faster_than_the_client_reads(node: Atoll, upstream: Upstream) -> None:
    node.deploy("endless", f"export default {{ fetch() {{ return fetch('{upstream.url}/endless') }} }}")
    upstream.sent = 0
    with node.connect() as client:
        client.sendall(f"GET / HTTP/1.1\r\nHost: {node.host('endless')}\r\n\r\n".encode())
        assert client.recv(12) == b"HTTP/1.1 200"
        before = -1
        while before != upstream.sent:  # until no more data is sent
            before = upstream.sent
            time.sleep(0.2)
        assert 0 < upstream.sent < 100_000_000  # the kernel buffers of two sockets and three windows
    node.wait_until(lambda: node.pool()["in_flight"] == 0)


# --- redirects ---


def test_redirects_are_followed_to_the_end(run: Run) -> None:
    answer = run("""const r = await fetch(UP + "/redirects/20");
      return Response.json([r.redirected, r.url.slice(UP.length), await r.text()])""")
    assert answer.json == [True, "/redirects/0", "there"]


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("fetch(UP + '/redirects/21')", "more than 20 redirects"),
        ("fetch(UP + '/redirects/1', { redirect: 'error' })", 'redirect: "error"'),
        ("fetch(UP + '/redirect/302?file:///etc/passwd')", "neither http nor https"),
        (
            "fetch(UP + '/redirect/307?/echo', { method: 'POST', duplex: 'half', body: new Blob(['a']).stream() })",
            "stream cannot",
        ),
        ("fetch(UP + '/redirect/302?http://169.254.169.254/')", "error 1024"),
    ],
)
def test_redirects_that_end_in_an_error(run: Run, script: str, text: str) -> None:
    answer = run(f"try {{ await {script}; }} catch (error) {{ return new Response(`${{error}}`); }}")
    assert answer.text.startswith("TypeError:") and text in answer.text


def test_a_manual_redirect_is_a_response(run: Run) -> None:
    answer = run("""const r = await fetch(UP + "/redirect/302?/x", { redirect: "manual" });
      return Response.json([r.status, r.headers.get("location"), r.redirected, await r.text()])""")
    assert answer.json == [302, "/x", False, "moved"]


@pytest.mark.parametrize(
    ("status", "method", "then", "body"),
    [
        (301, "POST", "GET", b""),
        (302, "PUT", "PUT", b"b"),
        (303, "PUT", "GET", b""),
        (307, "POST", "POST", b"b"),
        (308, "POST", "POST", b"b"),
    ],
)
def test_a_redirect_keeps_or_drops_the_body(
    run: Run, upstream: Upstream, status: int, method: str, then: str, body: bytes
) -> None:
    run(f"return fetch(UP + '/redirect/{status}?/echo', {{ method: '{method}', body: 'b' }})")
    seen = upstream.last()
    assert (seen.line.split()[0], seen.body, "content-type" in dict(seen.headers)) == (then, body, bool(body))


def test_secrets_do_not_cross_origins(run: Run, upstream: Upstream) -> None:
    other = Upstream()
    try:
        secrets = "{ headers: { authorization: 'a', cookie: 'c', 'x-kept': 'k' } }"
        run(f"return fetch(UP + '/redirect/302?{other.url}/echo', {secrets})")
        seen = other.last()
        assert (seen.get("authorization"), seen.get("cookie"), seen.get("x-kept")) == (None, None, "k")
        run(f"return fetch(UP + '/redirect/302?/echo', {secrets})")
        assert upstream.last().get("authorization") == "a"
    finally:
        other.close()


def test_each_redirect_counts_as_a_subrequest(run: Run) -> None:
    answer = run(
        "try { await fetch(UP + '/redirects/5'); } catch (error) { return new Response(`${error}`); }",
        limits={"subrequests": 5},
    )
    assert "Too many subrequests: one request may make 5 fetches" in answer.text


def test_the_51st_fetch_is_refused_unless_the_worker_asks_for_more(run: Run) -> None:
    code = """let made = 0;
      try { for (; made < 51; made++) await (await fetch(UP + "/n")).text(); return new Response("all"); }
      catch (error) { return new Response(`${made} ${error.name}: ${error.message}`); }"""
    refused = run(code, limits={"cpu_ms": 1000}).text
    assert refused.startswith("50 ") and "one request may make 50 fetches. Raise `limits.subrequests`" in refused
    assert run(code, limits={"cpu_ms": 1000, "subrequests": 51}).text == "all"


# --- content codings ---


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw-deflate", "br", "zstd"])
def test_codings_that_the_worker_did_not_request_are_invisible(run: Run, coding: str) -> None:
    answer = run(f"""const r = await fetch(UP + "/coded/{coding}");
      return Response.json([r.headers.get("content-encoding"), r.headers.get("content-length"), (await r.text()).length])""")
    assert answer.json == [None, None, 8000]


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_requested_coding_is_visible_and_decoded_when_read(run: Run, coding: str) -> None:
    answer = run(f"""const r = await fetch(UP + "/coded/{coding}", {{ headers: {{ "accept-encoding": "{coding}" }} }});
      return Response.json([r.headers.get("content-encoding"), (await r.text()).length])""")
    assert answer.json == [coding, 8000]


def test_an_unread_coded_body_passes_unchanged(run: Run) -> None:
    for script in ("return r", "return new Response(r.body, r)"):
        answer = run(
            f"const r = await fetch(UP + '/coded/gzip', request); {script}", headers={"Accept-Encoding": "gzip"}
        )
        assert answer.headers["content-encoding"] == "gzip"
        assert gzip.decompress(answer.body) == b"content " * 1000


def test_a_coded_body_under_other_headers_is_decoded(run: Run) -> None:
    answer = run(
        "const r = await fetch(UP + '/coded/br', request); return new Response(r.body)",
        headers={"Accept-Encoding": "br"},
    )
    assert answer.headers["content-encoding"] is None
    assert answer.body == b"content " * 1000


def test_a_changed_body_loses_an_unsupported_coding(run: Run) -> None:
    answer = run(
        "const r = await fetch(UP + '/coded/br', request); return new Response((await r.text()).slice(0, 7), r)",
        headers={"Accept-Encoding": "br"},
    )
    assert (answer.headers["content-encoding"], answer.text) == (None, "content")


def test_an_unknown_coding_is_not_decoded(run: Run) -> None:
    answer = run(
        "const r = await fetch(UP + '/coded/odd'); return Response.json([r.headers.get('content-encoding'), (await r.text()).length])"
    )
    assert answer.json == ["odd", 8000]


# --- aborting ---


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("await fetch(UP, { signal: AbortSignal.abort() })", "AbortError"),
        ("await fetch(UP, { signal: AbortSignal.abort('mine') })", "mine"),
        ("await fetch(UP + '/silent', { signal: AbortSignal.timeout(50) })", "TimeoutError"),
        ("await fetch(new Request(UP + '/silent', { signal: AbortSignal.timeout(50) }))", "TimeoutError"),
        ("const r = await fetch(UP + '/wait', { signal: AbortSignal.timeout(50) }); await r.text()", "TimeoutError"),
        (
            "const c = new AbortController(); const p = fetch(UP + '/silent', { signal: c.signal }); c.abort(); await p",
            "AbortError",
        ),
    ],
)
def test_a_fetch_can_be_aborted_at_any_moment(run: Run, upstream: Upstream, script: str, expected: str) -> None:
    upstream.release.clear()
    answer = run(
        f"try {{ {script}; return new Response('no error'); }} catch (error) {{ return new Response(error.name ?? error); }}"
    )
    upstream.release.set()
    assert answer.text == expected


@pytest.mark.parametrize("read", ["await r.text()", "await r.body.cancel()", "for await (const piece of r.body);"])
def test_a_long_lived_signal_does_not_retain_finished_fetches(run: Run, upstream: Upstream, read: str) -> None:
    answer = run(
        f"""const {{ signal }} = new AbortController();
        for (let i = 0; i < 200; i++) {{
          const r = await fetch(UP + "/bytes/100000", {{ signal, method: "POST", body: new Uint8Array(1 << 20) }});
          {read}
        }}
        return new Response("done")""",
        limits={"cpu_ms": 10000, "subrequests": 200},
    )
    upstream.seen.clear()  # it holds 200 MB
    assert answer.text == "done"


def test_cancelling_a_body_closes_its_connection(run: Run) -> None:
    answer = run("""for (let i = 0; i < 20; i++) { const r = await fetch(UP + "/endless"); await r.body.cancel(); }
      return new Response("done")""")
    assert answer.text == "done"


# --- other schemes ---


@pytest.mark.parametrize(
    ("url", "type", "text"),
    [
        ("data:,a%20b", "text/plain;charset=US-ASCII", "a b"),
        ("data:text/html;charset=utf-8,<b>#frag", "text/html;charset=utf-8", "<b>"),
        ("data:;base64,aGk", "text/plain;charset=US-ASCII", "hi"),
        ("data:image/png;base64,AAEC", "image/png", "\0\1\2"),
    ],
)
def test_data_urls(run: Run, url: str, type: str, text: str) -> None:
    answer = run(
        f"const r = await fetch('{url}'); return Response.json([r.headers.get('content-type'), await r.text()])"
    )
    assert answer.json == [type, text]


@pytest.mark.parametrize(
    "url", ["ftp://a/", "file:///etc/passwd", "blob:null/1", "about:blank", "data:nothing", "data:;base64,%"]
)
def test_other_urls_are_refused(run: Run, url: str) -> None:
    answer = run(f"try {{ await fetch('{url}'); }} catch (error) {{ return new Response(`${{error}}`); }}")
    assert answer.text.startswith(("TypeError: fetch:", "TypeError: Fetch API cannot load:"))
