"""Attacks from both sides: workers that try forbidden targets, and servers that misbehave.

Each attack ends in a clear error for that request only: the same worker is served as before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from atoll.bindings.fetch.messages import read_wanted, request_bytes, response_text
from atoll.errors import InvalidArgument
from tests.running import Answer, Atoll
from tests.upstream import Upstream

Run = Callable[..., Answer]

# Fetches argument 0 and reports the result.
TRY = """try {{ const r = await fetch({0}); return new Response(r.status + ' ' + (await r.text()).slice(0, 200)); }}
  catch (error) {{ return new Response(`${{error}}`); }}"""


def attempt(run: Run, argument: str, **fields: object) -> str:
    return run(TRY.format(argument), **fields).text


# --- workers that try forbidden targets ---


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://10.0.0.1/", "http://0x0a000001/",
        "http://167772161/", "http://0251.0376.0251.0376/", "http://192.168.1/", "http://172.16.0.1:8080/", "http://100.64.0.1/",
        "http://0/", "http://0.0.0.0/", "http://[::]/", "http://[::1]/", "http://[::ffff:10.0.0.1]/", "http://[::ffff:a9fe:a9fe]/",
        "http://[64:ff9b::a00:1]/", "http://[2002:a00:1::]/", "http://[fe80::1]/", "http://224.0.0.1/", "http://255.255.255.255/",
        "http://①⑥⑨.254.169.254/", "http://169。254。169。254/", "https://169.254.169.254/",
    ],
)  # fmt: skip
def test_no_internal_address_is_reachable_in_any_notation(run: Run, url: str) -> None:
    assert attempt(run, f"'{url}'").startswith("TypeError: error 1024")


def test_no_redirect_reaches_an_internal_address(run: Run) -> None:
    for there in ("http://169.254.169.254/", "http://[::1]/", "//10.0.0.1/"):
        assert "error 1024" in attempt(run, f"UP + '/redirect/302?{there}'")


def test_a_port_the_operator_closed_is_closed(run: Run) -> None:
    assert attempt(run, "'http://127.0.0.1:9/'").startswith(
        "TypeError: error 1021: 127.0.0.1:9 may not be reached: the rule '*:9'"
    )


@pytest.mark.parametrize(
    "meta",
    [
        {"url": "http://a/\r\nX: y"}, {"url": "http://a/ HTTP/1.1"}, {"url": "http://a\tb/"}, {"url": "http://us\0er/"}, {"url": "ftp://a/"},
        {"url": "http://a:b@c/"}, {"url": "http:///"}, {"url": "http://a:99999/"}, {"url": "http://a:0/"}, {"url": "http://A/"}, {"url": 5},
        {"url": "http://a/\u00e9"}, {"url": "http://[::1/"}, {"url": "http://a#b"}, {"url": "http://" + "a" * 300 + "/"},
        {"method": "GET /x HTTP/1.1\r\nhost: b\r\n\r\nGET"}, {"method": "CONNECT"}, {"method": "trace"}, {"method": ""}, {"method": None},
        {"head": "a: b\r\nc"}, {"head": "a: b\nc: d\r\n"}, {"head": "a: b\r\n\r\nGET / HTTP/1.1\r\n"}, {"head": "a b: c\r\n"}, {"head": ": c\r\n"},
        {"head": "a: \0\r\n"}, {"head": "a: b\rc\r\n"}, {"head": " a: b\r\n"}, {"head": "a: \u0100\r\n"}, {"head": ["a"]}, {"head": "a: " + "b" * 200_000 + "\r\n"},
        {"length": -1}, {"length": 1.5}, {"length": "5"}, {"length": True}, {"length": 2**60},
    ],
)  # fmt: skip
def test_a_hostile_engine_cannot_write_a_second_request(meta: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        read_wanted({"method": "POST", "url": "http://a/", "head": "", "streamed": True, **meta})


def test_a_request_holds_exactly_one_request_whatever_headers_a_worker_sets() -> None:
    names = [
        "Content-Length",
        "content-LENGTH",
        "Transfer-Encoding",
        "Connection",
        "Host",
        "Upgrade",
        "Expect",
        "TE",
        "Trailer",
    ]
    head = "".join(f"{name}: 3\r\n" for name in names)
    data = request_bytes(read_wanted({"method": "POST", "url": "http://a/", "head": head}), b"12345", 0, "zone")
    lower = data.lower()
    assert data.endswith(b"\r\n\r\n12345") and data.count(b"\r\n\r\n") == 1
    assert lower.count(b"content-length: 5\r\n") == 1 and lower.count(b"content-length") == 1
    assert lower.count(b"\r\nhost: a\r\n") == 1 and lower.count(b"host:") == 1
    assert b"transfer-encoding" not in lower and b"upgrade" not in lower


def test_names_and_values_with_line_breaks_never_leave_a_worker(run: Run, upstream: Upstream) -> None:
    for header in ("{ 'a\\r\\nb': 'c' }", "{ a: 'b\\r\\nx-evil: 1' }", "{ a: 'b\\nx-evil: 1' }", "{ a: 'b\\0' }"):
        assert attempt(run, f"UP + '/echo', {{ headers: {header} }}").startswith("TypeError")
    assert all("x-evil" not in seen.head.decode("latin-1") for seen in upstream.seen)


# --- servers that misbehave ---


@pytest.mark.parametrize(
    "raw",
    [
        "HTTP/1.1 200 OK\\nA: b\\nContent-Length: 6\\n\\nx\\r\\n\\r\\ny",
        "HTTP/1.1 200 OK\\r\\nA: b\\nContent-Length: 6\\r\\n\\nx\\r\\n\\r\\ny",
        "HTTP/1.1 200 OK\\nA: b\\r\\n\\r\\nx\\r\\n\\r\\ny",
    ],
)
def test_a_response_whose_lines_end_in_lf_alone_is_read(run: Run, raw: str) -> None:
    code = f"const r = await fetch(UP + '/raw', {{ method: 'POST', body: '{raw}' }});"
    answer = run(f"{code} return Response.json([r.headers.get('a'), await r.text(), [...r.headers.keys()].length])")
    assert answer.json[:2] == ["b", "x\r\n\r\ny"]
    assert answer.json[2] <= 2


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("SSH-2.0-OpenSSH_9\\r\\n", "invalid HTTP"),
        (
            "HTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n",
            "invalid HTTP",
        ),
        ("HTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\nContent-Length: 4\\r\\n\\r\\nabc", "invalid HTTP"),
        ("HTTP/1.1 200 OK\\r\\nContent-Length: -3\\r\\n\\r\\nabc", "invalid HTTP"),
        ("HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nzz\\r\\n", "invalid HTTP"),
        ("HTTP/1.1 200 OK\\r\\na: b\\0c\\r\\n\\r\\n", "invalid HTTP"),
        ("HTTP/1.1 200 OK\\r\\na: b\\rSet-Cookie: evil=1\\r\\ncontent-length: 0\\r\\n\\r\\n", "invalid HTTP"),
        ("HTTP/1.1 999 Odd\\r\\ncontent-length: 0\\r\\n\\r\\n", "999"),
        ("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: x\\r\\nConnection: upgrade\\r\\n\\r\\n", "another protocol"),
        ("HTTP/1.1 200 OK\\r\\ncontent-length: 10\\r\\n\\r\\nabc", "Network connection lost"),
        ("HTTP/1.1 200 OK\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n5\\r\\nab", "Network connection lost"),
        ("", "Network connection lost"),
    ],
)
def test_an_invalid_response_is_an_error(run: Run, raw: str, text: str) -> None:
    assert text in attempt(run, f"UP + '/raw', {{ method: 'POST', body: '{raw}' }}")
    assert attempt(run, "UP + '/fine'") == "200 GET /fine"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("a: b\\0c", "a header holds a NUL"),
        ("transfer-encoding: gzip, chunked", "a transfer coding that was not requested"),
    ],
)
def test_a_response_with_a_bad_head_is_an_error(run: Run, lines: str, text: str) -> None:
    raw = f"HTTP/1.1 200 OK\\r\\n{lines}\\r\\n\\r\\n0\\r\\n\\r\\n"
    answer = run(
        f"""return new Response(await fetch(UP + "/raw", {{ method: "POST", body: "{raw}" }}).catch(String))"""
    )
    assert answer.text.startswith("TypeError") and text in answer.text


def test_a_response_cannot_be_split_into_two(run: Run) -> None:
    two = "HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nokHTTP/1.1 200 OK\\r\\nset-cookie: evil=1\\r\\ncontent-length: 4\\r\\n\\r\\nevil"
    assert attempt(run, f"UP + '/raw-keep', {{ method: 'POST', body: '{two}' }}") == "200 ok"
    for _ in range(3):
        assert attempt(run, "UP + '/fine'") == "200 GET /fine"


def test_headers_of_a_response_that_no_worker_may_see_are_dropped() -> None:
    lines = b"Proxy-Authenticate: x\r\nTransfer-Encoding: chunked\r\nb\xffd: x\r\nX-Ok:  caf\xe9 \r\ny: a\nb\r\nno colon\r\n"
    assert response_text(lines)[0] == "x-ok: caf\xe9\r\n"


@pytest.mark.parametrize("path", ["endless-head"])
def test_an_endless_head_ends(run: Run, path: str) -> None:
    assert "longer than 128 KB" in attempt(run, f"UP + '/{path}'")


@pytest.mark.parametrize("path", ["endless-trailer", "endless-extension"])
def test_a_chunked_body_that_is_all_framing_ends(run: Run, path: str) -> None:
    assert "more framing than content" in attempt(run, f"UP + '/{path}'")


def test_the_body_of_a_head_response_is_not_the_next_response(run: Run) -> None:
    evil = "HTTP/1.1 200 OK\\r\\ncontent-length: 4\\r\\n\\r\\nevil"
    answer = run(f"""const all = [];
      for (let i = 0; i < 5; i++) {{
        await fetch(UP + "/raw-head", {{ method: "HEAD", headers: {{ "x-raw": encodeURIComponent("{evil}") }} }});
        all.push(await (await fetch(UP + "/fine")).text());
      }}
      return new Response([...new Set(all)].join())""")
    assert answer.text == "GET /fine"


@pytest.mark.parametrize("read", ["text()", "arrayBuffer()", "clone().text()", "json()", "blob()", "formData()"])
def test_an_endless_body_is_an_error_for_its_reader_only(node: Atoll, upstream: Upstream, read: str) -> None:
    """Read completely, it would fill the isolate. The reader gets an error, and concurrent calls are unaffected."""
    node.deploy(
        "whole",
        f"""let first; export default {{ async fetch(request) {{
          if (request.url.endsWith("/beside")) return new Response("isolate " + (first ??= crypto.randomUUID()));
          try {{ const r = await fetch("{upstream.url}/endless"); return new Response(await r.{read}) }}
          catch (error) {{ return new Response(`${{error}}`) }} }} }}""",
        limits={"memory_mb": 32, "cpu_ms": 10_000},
    )
    before = node.get("whole", "/beside").text
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda _: node.get("whole"), range(3)))
    for answer in answers:
        assert answer.text.startswith("TypeError: The body does not fit: a worker may hold 10 MB"), answer.text
    assert node.get("whole", "/beside").text == before


def test_a_silent_server_times_out(run: Run, upstream: Upstream) -> None:
    upstream.release.clear()
    began = time.monotonic()
    assert "was silent for 1 s" in attempt(run, "UP + '/silent'")
    assert "was silent for 1 s" in attempt(run, "UP + '/wait'")  # in the middle of a body
    assert time.monotonic() - began < 10
    upstream.release.set()


def test_a_slow_server_ends_with_the_time_of_the_request(run: Run) -> None:
    answer = run("await (await fetch(UP + '/trickle')).text()", limits={"wall_ms": 500})
    assert answer.status == 504


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_decompression_bomb_is_refused(node: Atoll, run: Run, coding: str) -> None:
    before = node.memory_mb()
    answer = run(
        f"""const r = await fetch(UP + "/bomb/{coding}"); let size = 0;
          try {{ for await (const chunk of r.body) size += chunk.length; }} catch (error) {{ return new Response(size + " " + error); }}""",
        limits={"cpu_ms": 5000},
    )
    assert "looks like a decompression bomb" in answer.text
    assert int(answer.text.split()[0]) < 64 << 20
    assert node.memory_mb() < before + 40


def test_a_broken_coding_is_an_error(run: Run) -> None:
    assert "broke off before its end" in attempt(run, "UP + '/broken-gzip'")
    raw = "HTTP/1.1 200 OK\\r\\ncontent-encoding: gzip\\r\\ncontent-length: 5\\r\\n\\r\\nplain"
    assert "not valid gzip" in attempt(run, f"UP + '/raw', {{ method: 'POST', body: '{raw}' }}")


@pytest.mark.parametrize(
    ("path", "text"), [("reset", "connection reset by"), ("short", "closed by"), ("hang-up", "closed by")]
)
def test_a_broken_connection_is_a_clear_error(run: Run, path: str, text: str) -> None:
    answer = attempt(run, f"UP + '/{path}'")
    assert answer.startswith("TypeError: Network connection lost") and text in answer


def test_a_body_that_breaks_in_transit_disconnects_the_client(node: Atoll, upstream: Upstream) -> None:
    """The client gets not one byte more, and no valid end of the body."""
    node.deploy("through", f"export default {{ fetch() {{ return fetch('{upstream.url}/reset') }} }}")
    with node.connect() as client:
        client.sendall(f"GET / HTTP/1.1\r\nHost: {node.host('through')}\r\n\r\n".encode())
        got = b""
        try:
            while data := client.recv(65536):
                got += data
        except ConnectionError:
            pass
    assert got.startswith(b"HTTP/1.1 200") and b"some of it" in got and not got.endswith(b"0\r\n\r\n")


# --- budgets ---


def test_a_redirect_storm_ends_with_the_subrequests(run: Run) -> None:
    storm = "for (let i = 0; i < 100; i++) await fetch(UP + '/redirects/20')"
    answer = run(f"try {{ {storm} }} catch (error) {{ return new Response(`${{error}}`) }}", limits={"subrequests": 60})
    assert "Too many subrequests: one request may make 60" in answer.text


def test_six_connections_at_once_and_the_rest_wait(run: Run, upstream: Upstream) -> None:
    upstream.release.clear()
    before = len(upstream.seen)
    answer = run("""const all = Array.from({ length: 9 }, (_, i) => fetch(UP + "/silent?" + i).then(() => "ok", () => "closed"));
      await scheduler.wait(400); const r = await fetch("data:,"); return new Response("done")""")
    assert answer.text == "done"
    assert len([seen for seen in upstream.seen[before:] if "/silent" in seen.line]) == 6
    upstream.release.set()


SHARED = """import {{ WorkerEntrypoint }} from "cloudflare:workers";
const UP = "{url}";
async function two(path) {{
  const all = await Promise.all([0, 1].map((i) => fetch(UP + path + i)));
  return (await Promise.all(all.map((each) => each.text()))).join();
}}
export default class extends WorkerEntrypoint {{
  async fetch(request) {{ return new Response(await two(new URL(request.url).pathname)); }}
  two(path) {{ return two(path); }}
}}"""


def shared(node: Atoll, upstream: Upstream) -> list[dict[str, str]]:
    """A worker that makes two fetches per call, as a service binding."""
    node.deploy("shares", SHARED.format(url=upstream.url))
    return [{"type": "service", "name": "API", "service": "shares"}]


def test_workers_behind_service_bindings_share_the_six(node: Atoll, run: Run, upstream: Upstream) -> None:
    upstream.most_held = 0
    answer = run(
        """const own = Array.from({ length: 4 }, async (_, i) => (await fetch(UP + "/held?" + i)).text());
      const fetched = Array.from({ length: 4 }, async () => (await env.API.fetch("http://api/held/")).text());
      const called = Array.from({ length: 4 }, () => env.API.two("/held?"));
      return new Response((await Promise.all([...own, ...fetched, ...called])).join())""",
        bindings=shared(node, upstream),
    )
    assert answer.text == ",".join(["held"] * 20)
    assert 2 <= upstream.most_held <= 6


def test_calls_through_service_bindings_take_none_of_the_six(node: Atoll, run: Run, upstream: Upstream) -> None:
    """Otherwise the called workers could not finish what their callers wait for."""
    answer = run(
        """const all = await Promise.all(Array.from({ length: 12 }, async (_, i) =>
        i % 2 ? env.API.two("/n" + i) : (await env.API.fetch("http://api/n" + i)).text()));
      return new Response(`${all.length} ${all[10]} ${all[11]}`)""",
        bindings=shared(node, upstream),
    )
    assert answer.text == "12 GET /n100,GET /n101 GET /n110,GET /n111"


def test_many_small_fetches_at_once_all_succeed(run: Run) -> None:
    answer = run(
        """const all = await Promise.all(Array.from({ length: 60 }, async (_, i) => (await fetch(UP + "/n" + i)).text()));
      return new Response(all.length + all[59])""",
        limits={"subrequests": 60, "cpu_ms": 1000},
    )
    assert answer.text == "60GET /n59"


def test_unread_responses_do_not_block_the_seventh_fetch_forever(run: Run) -> None:
    answer = run("""const held = []; for (let i = 0; i < 6; i++) held.push(await fetch(UP + "/endless"));
      const seventh = await (await fetch(UP + "/fine")).text();
      let error = ""; try { await held[0].text(); } catch (e) { error = e; }
      return new Response(seventh + " / " + error)""")
    assert answer.text.startswith("GET /fine / TypeError: the response of") and "6 connections" in answer.text
