"""A fetch to a host of the same node: another worker answers, without a socket."""

from __future__ import annotations

from collections.abc import Callable

from tests.running import Answer, Atoll

Run = Callable[..., Answer]

CALLEE = """export default { async fetch(request) {
  const url = new URL(request.url);
  if (url.pathname === "/throw") throw new Error("of the callee");
  if (url.pathname === "/body") return new Response(request.body, { headers: { "x-length": request.headers.get("content-length") } });
  return Response.json([request.method, request.url, request.headers.get("cf-worker"), request.headers.get("x-a")], { status: 202 });
} };"""


def test_a_worker_answers_a_worker(node: Atoll, run: Run) -> None:
    node.deploy("callee", CALLEE)
    answer = run("return fetch('http://callee.localhost/path?q', { method: 'PATCH', headers: { 'x-a': 'b' } })")
    method, url, worker, header = answer.json
    assert answer.status == 202
    assert (method, url, header) == ("PATCH", "http://callee.localhost/path?q", "b")
    assert worker.endswith(".localhost")


def test_bodies_stream_through_both(node: Atoll, run: Run) -> None:
    node.deploy("callee", CALLEE)
    data = bytes(range(256)) * 8000
    answer = run("return fetch('http://callee.localhost/body', request)", data=data)
    assert answer.body == data
    assert answer.headers["x-length"] == str(len(data))
    piece = "const { readable, writable } = new TransformStream(); const w = writable.getWriter();"
    sent = "ctx.waitUntil((async () => { for (let i = 0; i < 40; i++) await w.write(new Uint8Array(65536)); await w.close(); })());"
    answer = run(
        f"{piece} {sent} return fetch('http://callee.localhost/body', {{ method: 'POST', body: readable, duplex: 'half' }})"
    )
    assert len(answer.body) == 40 * 65536


def test_an_error_of_the_callee_is_the_response_that_a_client_would_get(node: Atoll, run: Run) -> None:
    node.deploy("callee", CALLEE)
    answer = run(
        "const r = await fetch('http://callee.localhost/throw'); return new Response(r.status + await r.text())"
    )
    assert answer.text == "500error code: 1101"


def test_a_body_of_a_callee_that_breaks_is_an_error(node: Atoll, run: Run) -> None:
    node.deploy(
        "callee-breaks",
        """export default { fetch() { return new Response(new ReadableStream({ async pull(c) {
          c.enqueue(new Uint8Array(5)); await scheduler.wait(20); c.error(new Error("broken")); } })); } };""",
    )
    answer = run("""const r = await fetch("http://callee-breaks.localhost/");
      try { await r.text(); } catch (error) { return new Response(`${error}`); }""")
    assert answer.text.startswith("TypeError: Network connection lost")


def test_a_loop_of_workers_ends(node: Atoll) -> None:
    node.deploy(
        "loop",
        """export default { async fetch(request) {
      const depth = Number(new URL(request.url).searchParams.get("d"));
      try { return await fetch("http://loop.localhost/?d=" + (depth + 1)); } catch (error) { return new Response(depth + " " + error); }
    } };""",
    )
    assert node.get("loop", "/?d=0").text.startswith("16 Error: error 1019")


def test_only_the_ports_of_the_node_lead_inside(node: Atoll, run: Run) -> None:
    node.deploy("callee", CALLEE)
    assert run(f"return fetch('http://callee.localhost:{node.port}/')").status == 202
    assert run("return fetch('https://callee.localhost/')").status == 202
    answer = run(
        "try { await fetch('http://callee.localhost:1234/') } catch (error) { return new Response(`${error}`) }"
    )
    assert answer.text.startswith("TypeError")


def test_the_control_api_is_out_of_reach(node: Atoll, run: Run) -> None:
    for host in ("localhost", "[::1]"):
        answer = run(
            f"try {{ await fetch('http://{host}:{node.port}/api/workers') }} catch (error) {{ return new Response(`${{error}}`) }}"
        )
        assert "error 1024" in answer.text
