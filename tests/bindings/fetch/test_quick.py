"""Repeated fetches take a shorter path (bindings/fetch/quick.py). Only the timing may differ."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.running import Answer, Atoll
from tests.upstream import Upstream

Run = Callable[..., Answer]

# A request on an open connection, to a server that got the same request before.
WARM = "await (await fetch(UP + '/warm')).text(); await (await fetch(UP + '/warm')).text();"


def count(node: Atoll, op: str) -> float:
    name = f'atoll_op_duration_seconds_count{{binding="fetch",op="{op}"}} '
    lines = node.control("GET", "/metrics").text.splitlines()
    return next((float(line.removeprefix(name)) for line in lines if line.startswith(name)), 0)


def test_repeated_requests_differ_only_in_path_and_body(run: Run, upstream: Upstream) -> None:
    before = len(upstream.seen)
    run("""for (let i = 0; i < 4; i++) {
        const r = await fetch(UP + "/echo/" + i + "?q=" + i, { method: "POST", body: "b".repeat(i), headers: { "X-A": "a" } });
        if ((await r.text()) !== "b".repeat(i)) throw new Error("not what was sent");
      } return new Response("")""")
    first, *others = upstream.seen[before:]
    assert [seen.line for seen in others] == [f"POST /echo/{i}?q={i} HTTP/1.1" for i in (1, 2, 3)]
    assert [seen.body for seen in others] == [b"b" * i for i in (1, 2, 3)]
    for seen in others:
        without_length = [pair for pair in seen.headers if pair[0] != "content-length"]
        assert without_length == [pair for pair in first.headers if pair[0] != "content-length"]
        assert seen.get("content-length") == str(len(seen.body)) and seen.connection == first.connection


def test_a_path_that_looks_like_part_of_a_host_stays_one(run: Run, upstream: Upstream) -> None:
    run(
        "for (const path of ['?x=/a', '?x=/b', '/?x=/c', '/%2f/d']) await (await fetch(UP + path)).text(); return new Response('')"
    )
    assert [seen.line.split()[1] for seen in upstream.seen[-4:]] == ["/?x=/a", "/?x=/b", "/?x=/c", "/%2f/d"]


def test_a_connection_closed_by_the_server_is_not_an_error(run: Run) -> None:
    script = "const all = []; for (let i = 0; i < 5; i++) all.push(await (await fetch(UP + '/once')).text());"
    assert run(f"{WARM} {script} return Response.json(all)").json == ["once"] * 5


@pytest.mark.parametrize(("method", "times"), [("GET", 2), ("PUT", 2), ("POST", 1), ("PATCH", 1)])
def test_only_idempotent_requests_are_retried(run: Run, upstream: Upstream, method: str, times: int) -> None:
    before = len(upstream.seen)
    answer = run(f"""const ask = async (path) => (await fetch(UP + path, {{ method: "{method}" }})).text();
      await ask("/a"); await ask("/b");
      try {{ return new Response(await ask("/hang-up")) }} catch (error) {{ return new Response(`${{error}}`) }}""")
    assert answer.text.startswith("TypeError: Network connection lost")
    assert len([seen for seen in upstream.seen[before:] if "/hang-up" in seen.line]) == times


def test_a_small_body_arrives_with_its_head(run: Run, node: Atoll) -> None:
    answer = run(f"{WARM} return fetch(UP + '/pieces')")
    before = count(node, "fetch.read") + count(node, "fetch.send")
    assert answer.text == "in two pieces"
    # On a busy machine not every time: the body may arrive too late.
    for _ in range(20):
        assert run(f"{WARM} return fetch(UP + '/pieces')").text == "in two pieces"
        now = count(node, "fetch.read") + count(node, "fetch.send")
        if now == before:
            return
        before = now
    pytest.fail("it never came in one piece")


def test_a_late_body_does_not_delay_its_head(run: Run, upstream: Upstream) -> None:
    upstream.release.clear()
    answer = run(f"{WARM} const r = await fetch(UP + '/wait'); r.body.cancel(); return new Response(r.status)")
    upstream.release.set()
    assert answer.text == "200"


def test_a_quick_fetch_can_be_aborted_before_its_answer(run: Run, upstream: Upstream) -> None:
    upstream.release.clear()
    answer = run(f"""{WARM} const controller = new AbortController(); setTimeout(() => controller.abort(), 30);
      try {{ await fetch(UP + "/silent", {{ signal: controller.signal }}) }} catch (error) {{
        return new Response(error.name + " " + await (await fetch(UP + "/fine")).text()) }}""")
    upstream.release.set()
    assert answer.text == "AbortError GET /fine"


def test_a_client_that_disconnects_cancels_its_quick_fetch(node: Atoll, upstream: Upstream) -> None:
    upstream.release.clear()
    node.deploy(
        "leaves",
        f"""const UP = "{upstream.url}"; export default {{ async fetch(request) {{
        if (request.url.endsWith("/warm")) {{ {WARM} return new Response("warm"); }} return fetch(UP + "/silent"); }} }}""",
    )
    assert node.get("leaves", "/warm").text == "warm"
    before = len(upstream.seen)
    with node.connect() as client:
        client.sendall(f"GET / HTTP/1.1\r\nHost: {node.host('leaves')}\r\n\r\n".encode())
        node.wait_until(lambda: len(upstream.seen) > before)
    node.wait_until(lambda: node.pool()["in_flight"] == 0)
    upstream.release.set()


def test_a_silent_server_times_out_on_the_quick_path(run: Run, upstream: Upstream) -> None:
    upstream.release.clear()
    answer = run(
        f"{WARM} try {{ return await fetch(UP + '/silent') }} catch (error) {{ return new Response(`${{error}}`) }}"
    )
    upstream.release.set()
    assert "was silent for 1 s" in answer.text


def test_six_at_once_and_the_rest_wait(run: Run, upstream: Upstream) -> None:
    upstream.release.clear()
    before = len(upstream.seen)
    run(f"""{WARM} await Promise.all(Array.from({{ length: 6 }}, async (_, i) => (await fetch(UP + "/n" + i)).text()));
      for (let i = 0; i < 9; i++) fetch(UP + "/silent?" + i).catch(() => {{}});
      await scheduler.wait(300); return new Response("")""")
    assert len([seen for seen in upstream.seen[before:] if "/silent" in seen.line]) == 6
    upstream.release.set()


def test_changed_rules_apply_to_known_targets(node: Atoll, upstream: Upstream) -> None:
    node.deploy(
        "asks",
        f"""export default {{ async fetch() {{ try {{ return await fetch("{upstream.url}/fine") }}
        catch (error) {{ return new Response(`${{error}}`) }} }} }}""",
    )
    assert [node.get("asks").text for _ in range(3)] == ["GET /fine"] * 3
    node.control("PATCH", "/api/tenants/default", {"egress": {"deny": ["127.0.0.1"]}})
    try:
        assert "of the deny list of the tenant" in node.get("asks").text
    finally:
        node.control("PATCH", "/api/tenants/default", {"egress": {}})
    assert node.get("asks").text == "GET /fine"
    node.deploy("asks", egress={"deny": [f"*:{upstream.port}"]})
    assert "of the deny list of the worker" in node.get("asks").text


# --- to workers of the same node ---

CALLEE = """let aborted = 0; export default { async fetch(request) {
  if (request.url.endsWith("/aborted")) return new Response(aborted);
  if (request.url.endsWith("/never")) {
    request.signal.addEventListener("abort", () => aborted++);
    await scheduler.wait(20_000);
  }
  if (request.url.endsWith("/throws")) throw new Error("no");
  return new Response(`${request.method} ${await request.text()}`, { status: 201, headers: { "x-a": "b" } });
} };"""


def test_a_worker_of_the_node_answers_with_status_headers_and_body(node: Atoll, run: Run) -> None:
    node.deploy("callee", CALLEE)
    answer = run(f"""const r = await fetch("http://{node.host("callee")}/", {{ method: "PUT", body: "abc" }});
      const broken = await fetch("http://{node.host("callee")}/throws");
      return Response.json([r.status, r.headers.get("x-a"), await r.text(), broken.status, await broken.text()])""")
    assert answer.json == [201, "b", "PUT abc", 500, "error code: 1101"]


def test_a_fetch_of_a_worker_of_the_node_can_be_aborted(node: Atoll, run: Run) -> None:
    node.deploy("callee", CALLEE)
    answer = run(f"""const controller = new AbortController(); setTimeout(() => controller.abort(), 50);
      try {{ await fetch("http://{node.host("callee")}/never", {{ signal: controller.signal }}) }}
      catch (error) {{ return new Response(error.name) }}""")
    assert answer.text == "AbortError"
    node.wait_until(lambda: node.get("callee", "/aborted").text != "0")


def test_fetches_to_other_workers_end_with_their_call(node: Atoll, run: Run) -> None:
    node.deploy("callee", CALLEE)
    before = int(node.get("callee", "/aborted").text)
    assert (
        run(f"""fetch("http://{node.host("callee")}/never").catch(() => {{}}); return new Response("gone")""").text
        == "gone"
    )
    node.wait_until(lambda: node.pool()["in_flight"] == 0)
    assert int(node.get("callee", "/aborted").text) in (before, before + 1)
