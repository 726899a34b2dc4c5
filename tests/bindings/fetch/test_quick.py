"""The second fetch like another one takes a shorter way (bindings/fetch/quick.py): nobody may notice but by the clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.running import Answer, Atoll
from tests.upstream import Upstream

Run = Callable[..., Answer]

# A request on a connection that is open, to a server that was asked before in just that way.
WARM = "await (await fetch(UP + '/warm')).text(); await (await fetch(UP + '/warm')).text();"


def count(node: Atoll, op: str) -> float:
    name = f'atoll_op_duration_seconds_count{{binding="fetch",op="{op}"}} '
    lines = node.control("GET", "/metrics").text.splitlines()
    return next((float(line.removeprefix(name)) for line in lines if line.startswith(name)), 0)


def test_requests_differ_in_nothing_but_their_path_and_body(run: Run, upstream: Upstream) -> None:
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


def test_a_connection_that_the_server_closed_is_no_error(run: Run) -> None:
    script = "const all = []; for (let i = 0; i < 5; i++) all.push(await (await fetch(UP + '/once')).text());"
    assert run(f"{WARM} {script} return Response.json(all)").json == ["once"] * 5


@pytest.mark.parametrize(("method", "times"), [("GET", 2), ("PUT", 2), ("POST", 1), ("PATCH", 1)])
def test_only_what_may_be_acted_upon_twice_is_sent_again(run: Run, upstream: Upstream, method: str, times: int) -> None:
    before = len(upstream.seen)
    answer = run(f"""const ask = async (path) => (await fetch(UP + path, {{ method: "{method}" }})).text();
      await ask("/a"); await ask("/b");
      try {{ return new Response(await ask("/hang-up")) }} catch (error) {{ return new Response(`${{error}}`) }}""")
    assert answer.text.startswith("TypeError: Network connection lost")
    assert len([seen for seen in upstream.seen[before:] if "/hang-up" in seen.line]) == times


def test_a_small_body_behind_its_head_comes_with_it(run: Run, node: Atoll) -> None:
    answer = run(f"{WARM} return fetch(UP + '/pieces')")
    before = count(node, "fetch.read") + count(node, "fetch.send")
    assert answer.text == "in two pieces"
    # Not every time on a busy machine: the body may be later than anyone waits.
    for _ in range(20):
        assert run(f"{WARM} return fetch(UP + '/pieces')").text == "in two pieces"
        now = count(node, "fetch.read") + count(node, "fetch.send")
        if now == before:
            return
        before = now
    pytest.fail("it never came in one piece")


def test_a_body_that_is_late_does_not_hold_up_its_head(run: Run, upstream: Upstream) -> None:
    upstream.release.clear()
    answer = run(f"{WARM} const r = await fetch(UP + '/wait'); r.body.cancel(); return new Response(r.status)")
    upstream.release.set()
    assert answer.text == "200"


def test_it_can_be_aborted_before_it_is_answered(run: Run, upstream: Upstream) -> None:
    upstream.release.clear()
    answer = run(f"""{WARM} const controller = new AbortController(); setTimeout(() => controller.abort(), 30);
      try {{ await fetch(UP + "/silent", {{ signal: controller.signal }}) }} catch (error) {{
        return new Response(error.name + " " + await (await fetch(UP + "/fine")).text()) }}""")
    upstream.release.set()
    assert answer.text == "AbortError GET /fine"


def test_a_client_that_leaves_takes_it_along(node: Atoll, upstream: Upstream) -> None:
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


def test_a_server_that_is_silent_is_given_up(run: Run, upstream: Upstream) -> None:
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


def test_rules_that_change_hold_for_what_was_asked_before(node: Atoll, upstream: Upstream) -> None:
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


def test_a_call_that_ends_takes_its_fetches_of_other_workers_along(node: Atoll, run: Run) -> None:
    node.deploy("callee", CALLEE)
    before = int(node.get("callee", "/aborted").text)
    assert (
        run(f"""fetch("http://{node.host("callee")}/never").catch(() => {{}}); return new Response("gone")""").text
        == "gone"
    )
    node.wait_until(lambda: node.pool()["in_flight"] == 0)
    assert int(node.get("callee", "/aborted").text) in (before, before + 1)
