"""Details of the fetch() standard that are easy to get wrong; found by web-platform-tests."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

import pytest

from tests.running import Answer
from tests.upstream import Upstream

Run = Callable[..., Answer]


def test_a_fetched_response_is_basic(run: Run) -> None:
    assert run("const r = await fetch(UP + '/fine'); return new Response(r.type + r.clone().type)").text == "basicbasic"


@pytest.mark.parametrize(
    ("init", "told"),
    [
        ("cache: 'no-store'", ("no-cache", "no-cache")),
        ("cache: 'reload'", ("no-cache", "no-cache")),
        ("cache: 'no-cache'", ("max-age=0", None)),
        ("cache: 'no-store', headers: { 'cache-control': 'max-age=5' }", ("max-age=5", "no-cache")),
        ("cache: 'force-cache'", (None, None)),
        ("", (None, None)),
    ],
)
def test_the_cache_mode_is_sent_to_caches(
    run: Run, upstream: Upstream, init: str, told: tuple[str | None, str | None]
) -> None:
    run(
        f"const r = new Request(UP + '/fine', {{ {init} }}); await fetch(r); return new Response([...r.headers].join())"
    )
    assert (upstream.last().get("cache-control"), upstream.last().get("pragma")) == told


def test_header_values_may_be_any_bytes_except_line_ends(run: Run, upstream: Upstream) -> None:
    value = "".join(f"\\x{code:02x}" for code in range(1, 256) if code not in (9, 10, 13, 32))
    raw = "HTTP/1.1 200 OK\\r\\nx-odd: \\x01\\x0b\\x7f\\r\\nfolded: a\\r\\n b\\r\\ncontent-length: 0\\r\\n\\r\\n"
    answer = run(
        f"await fetch(UP + '/fine', {{ headers: {{ 'x-odd': '{value}' }} }});"
        f"const r = await fetch(UP + '/raw', {{ method: 'POST', body: '{raw}' }});"
        "return Response.json([r.headers.get('x-odd'), r.headers.get('folded')])"
    )
    sent = bytes(code for code in range(1, 256) if code not in (9, 10, 13, 32))
    assert any(b"x-odd: " + sent in seen.head for seen in upstream.seen)
    assert answer.json == ["\x01\x0b\x7f", "a b"]


@pytest.mark.parametrize(
    ("location", "found"),
    [("/\\xe2\\x98\\x83", "/%E2%98%83"), ("/%e2?\\xff", "/%e2?%FF"), ("/a b", "/a%20b")],
)
def test_bytes_of_a_location_are_escaped(run: Run, upstream: Upstream, location: str, found: str) -> None:
    raw = f"HTTP/1.1 302 Found\\r\\nlocation: {location}\\r\\ncontent-length: 0\\r\\n\\r\\n"
    bytes_of = "Uint8Array.from(text, (char) => char.charCodeAt(0))"
    answer = run(
        f"const text = '{raw}'; const r = await fetch(UP + '/raw', {{ method: 'POST', body: {bytes_of} }});"
        "return new Response(r.url)"
    )
    assert answer.text == upstream.url + found


def test_a_range_request_accepts_only_the_identity_coding(run: Run, upstream: Upstream) -> None:
    run("return fetch(UP + '/fine', { headers: { range: 'bytes=0-1' } })")
    assert upstream.last().get("accept-encoding") == "identity"


def test_the_user_agent_is_sent_unless_the_worker_sets_it(run: Run, upstream: Upstream) -> None:
    run("return fetch(UP + '/fine')")
    assert upstream.last().get("user-agent") == "Atoll"
    run("return fetch(UP + '/fine', { headers: { 'User-Agent': 'mine' } })")
    assert upstream.last().get("user-agent") == "mine"


@pytest.mark.parametrize("status", [204, 205, 304])
def test_statuses_without_a_body(run: Run, status: int) -> None:
    # The server closes after it, and says so: else the next test may still use this connection.
    raw = f"HTTP/1.1 {status} X\\r\\nconnection: close\\r\\ncontent-length: 3\\r\\n\\r\\nabc"
    script = (
        "const r = await fetch(UP + '/raw', { method: 'POST', body: RAW }); return Response.json([r.status, r.body])"
    )
    assert run(script.replace("RAW", f"'{raw}'")).json == [status, None]


def test_an_undecodable_body_is_an_error_of_the_body(run: Run) -> None:
    raw = "HTTP/1.1 200 OK\\r\\ncontent-encoding: gzip\\r\\ncontent-length: 3\\r\\n\\r\\nabc"
    answer = run(
        f"const r = await fetch(UP + '/raw', {{ method: 'POST', body: '{raw}' }});"
        "return Response.json([r.status, await r.text().catch((error) => error.name + ' ' + error.message)])"
    )
    status, text = answer.json
    assert status == 200 and text.startswith("TypeError") and "gzip" in text


def test_integrity(run: Run) -> None:
    def digest(name: str, text: bytes) -> str:
        return f"{name}-{base64.b64encode(hashlib.new(name, text).digest()).decode()}"

    right, strong, wrong = digest("sha256", b"GET /a"), digest("sha512", b"GET /a"), digest("sha512", b"other")
    for integrity, expected in (
        (right, "GET /a"),
        (strong.rstrip("=").replace("+", "-").replace("/", "_"), "GET /a"),
        (f"{wrong} {strong}?option", "GET /a"),
        ("md5-nobody-knows", "GET /a"),
        (wrong, "TypeError"),
        (f"{right} {wrong}", "TypeError"),  # only the strongest counts
    ):
        answer = run(
            f"return fetch(UP + '/a', {{ integrity: '{integrity}' }})"
            ".then((response) => response.text(), (error) => error.name).then((text) => new Response(text))"
        )
        assert answer.text == expected, integrity


def test_aborting_takes_effect_at_once(run: Run) -> None:
    answer = run("""
      const order = [];
      const next = (name) => Promise.resolve().then(() => order.push(name));
      const aborted = AbortSignal.abort(new Error("no"));
      let cancelled;
      const body = new ReadableStream({ cancel: (reason) => { cancelled = reason.message; } });
      const early = fetch(UP + "/fine", { signal: aborted, method: "POST", body, duplex: "half" });
      order.push(cancelled);
      await Promise.all([early.catch(() => order.push("fetch")), next("then")]);
      const controller = new AbortController();
      const response = await fetch(UP + "/endless", { signal: controller.signal });
      controller.abort();
      await Promise.all([response.text().catch((error) => order.push(error.name)), next("then")]);
      await response.text().catch((error) => order.push(error.name));
      return Response.json(order);
    """)
    assert answer.json == ["no", "fetch", "then", "AbortError", "then", "AbortError"]


def test_a_broken_response_is_reported_without_reading_it(run: Run) -> None:
    raw = "HTTP/1.1 200 OK\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n3\\r\\nabc\\r\\n"
    answer = run(
        f"const r = await fetch(UP + '/raw', {{ method: 'POST', body: '{raw}' }}); const reader = r.body.getReader();"
        "await reader.read(); return new Response(await reader.closed.catch((error) => error.name))"
    )
    assert answer.text == "TypeError"


def test_only_if_cached_is_a_type_error_without_a_request(run: Run, upstream: Upstream) -> None:
    before = len(upstream.seen)
    init = "{ cache: 'only-if-cached', mode: 'same-origin' }"
    assert (
        run(f"return new Response(await fetch(UP + '/fine', {init}).catch((error) => error.name))").text == "TypeError"
    )
    assert len(upstream.seen) == before
