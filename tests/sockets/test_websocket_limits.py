"""Limits of workers' WebSockets: servers that break the rules, budgets, and the end of the request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.running import Atoll
from tests.socket_servers import FRAMES, HANDSHAKES, PRELUDE, Peer, Rogue

Run = Callable[..., Any]


# --- a server that breaks the rules ---


@pytest.mark.parametrize("name", [*HANDSHAKES, "endless"])
def test_a_bad_answer_to_the_handshake_fails_it(run: Run, rogue: Rogue, name: str) -> None:
    rogue.over.clear()
    assert run(f"return events(new WebSocket('{rogue.url}/{name}'));") == ["error", "close 1006 false"]
    if not name.startswith(("status", "redirect")):  # a valid HTTP answer, after which the connection is kept
        assert rogue.over.wait(10), "the connection was left open"


def test_fetch_reports_what_was_wrong_with_the_handshake(run: Run, rogue: Rogue) -> None:
    answer = run(f"return upgrade('{rogue.url}/wrong-accept');")
    assert answer["error"].startswith("TypeError") and "Sec-WebSocket-Accept" in answer["error"]
    body = f"""const r = await fetch('{rogue.url}/status-426', {{ headers: {{ Upgrade: "websocket" }} }});
      return [r.status, r.webSocket, await r.text()];"""
    assert run(body) == [426, None, "no"]


@pytest.mark.parametrize("name", FRAMES)
def test_a_bad_frame_ends_only_that_socket(run: Run, node: Atoll, rogue: Rogue, name: str) -> None:
    rogue.over.clear()
    before = node.memory_mb()
    if name == "cut-in-a-frame":
        body = f"const ws = await upgrade('{rogue.url}/{name}'); ws.accept(); await scheduler.wait(100); return ws.readyState;"
        assert run(body) == 1  # the socket waits, and ends with the request
    else:
        seen = run(f"return events(new WebSocket('{rogue.url}/{name}'));", limits={"cpu_ms": 5000})
        assert seen == ["open", "error", "close 1006 false"]
    assert rogue.over.wait(15), "the connection was left open"
    assert node.memory_mb() - before < 150  # a bomb of 400 MB was not inflated
    assert b"\x88" in rogue.heard[:1], "the server receives a close frame"


def test_frames_to_a_server_are_masked_each_with_its_own_key(run: Run, rogue: Rogue) -> None:
    rogue.over.clear()
    body = f"""const ws = await opened(new WebSocket('{rogue.url}/cut-in-a-frame'));
      for (let i = 0; i < 8; i++) ws.send("\\0\\0\\0\\0"); await scheduler.wait(100);"""
    run(body)
    assert rogue.over.wait(15)
    frames = [rogue.heard[at : at + 10] for at in range(0, 80, 10)]
    assert all(frame[0] in (0x81, 0xC1) and frame[1] & 0x80 for frame in frames)
    assert len({frame[2:6] for frame in frames}) == 8


def test_pings_are_answered_and_a_silent_server_is_dropped(run: Run, rogue: Rogue) -> None:
    """socket_timeout is 2 s here: a silent server is pinged, then dropped."""
    body = f"return events(new WebSocket('{rogue.url}/cut-in-a-frame'));"
    assert run(body, limits={"wall_ms": 20_000}) == ["open", "error", "close 1006 false"]
    assert rogue.heard[:1] == b"\x89"


# --- budgets and policy ---


def test_the_egress_policy_applies_to_sockets(run: Run, peer: Peer) -> None:
    denied = run("return upgrade(UP);", egress={"deny": ["127.0.0.1"]})
    assert "error 102" in denied["error"]
    for url in ("ws://169.254.169.254/", "ws://[::1]:80/", "ws://2130706433:1/", "ws://10.0.0.1/"):
        assert "error" in run(f"return upgrade('{url}');")
    assert run("return events(new WebSocket('ws://169.254.169.254/'));") == ["error", "close 1006 false"]


def test_a_socket_counts_as_a_subrequest(run: Run) -> None:
    body = "const all = await Promise.allSettled([upgrade(UP), upgrade(UP), upgrade(UP)]); return all.map((each) => each.status);"
    assert run(body, limits={"subrequests": 2}) == ["fulfilled", "fulfilled", "rejected"]


def test_a_seventh_socket_of_one_request_is_refused_clearly(run: Run) -> None:
    body = """const sockets = [];
      for (let i = 0; i < 6; i++) sockets.push(await upgrade(UP));
      let said;
      try { await upgrade(UP); } catch (error) { said = error.message; }
      const end = ended(sockets[0]); sockets[0].accept(); sockets[0].close(); await end;
      const again = await upgrade(UP);
      return [said, again.readyState];"""
    said, state = run(body)
    assert "all sockets" in said and state == 1


def test_sockets_count_towards_the_connections_of_the_tenant(node: Atoll, peer: Peer) -> None:
    source = f"""{PRELUDE}
      export default {{ async fetch(request, env, ctx) {{
        const sockets = [];
        try {{ for (let i = 0; i < 5; i++) sockets.push(await upgrade("{peer.url}")); }}
        catch (error) {{ return new Response(error.message); }}
        ctx.waitUntil(scheduler.wait(3000));
        return new Response("five");
      }} }};"""
    node.deploy("ws-tenant", source)
    assert node.get("ws-tenant").text == "five"
    assert "tenant_connections" in node.get("ws-tenant").text


# --- lifetime ---


def test_a_socket_is_closed_with_1001_when_its_request_ends(run: Run, peer: Peer) -> None:
    count = len(peer.closes)
    run("await opened(new WebSocket(UP));")
    assert peer.wait_close(count + 1) == (1001, "")


def test_a_socket_stays_open_as_long_as_waituntil(node: Atoll, peer: Peer) -> None:
    source = f"""{PRELUDE}
      export default {{ async fetch(request, env, ctx) {{
        const ws = await opened(new WebSocket("{peer.url}"));
        ctx.waitUntil((async () => {{ await scheduler.wait(300); ws.send("late"); console.log("heard", await next(ws)); ws.close(1000); }})());
        return new Response("early");
      }} }};"""
    node.deploy("ws-late", source)
    assert node.get("ws-late").text == "early"
    node.wait_until(lambda: "heard late" in json.dumps(node.logs("ws-late")))


def test_a_socket_ends_with_a_condemned_isolate(node: Atoll, peer: Peer) -> None:
    source = f"""{PRELUDE}
      export default {{ async fetch(request, env, ctx) {{
        await opened(new WebSocket("{peer.url}"));
        for (;;);
      }} }};"""
    node.deploy("ws-condemned", source)
    count = len(peer.closes)
    assert node.get("ws-condemned").status == 503
    assert peer.wait_close(count + 1)[0] in (1001, 1006)


def test_a_socket_is_closed_when_the_node_stops(new_atoll: Callable[..., Atoll]) -> None:
    own = Peer()
    node = new_atoll(engines=1, egress_allow="127.0.0.1", drain_seconds=1)
    source = f"""{PRELUDE}
      export default {{ async fetch(request, env, ctx) {{
        const ws = await opened(new WebSocket("{own.url}"));
        ctx.waitUntil(ended(ws));
        return new Response("open");
      }} }};"""
    node.deploy("ws-open", source)
    assert node.get("ws-open").text == "open"
    assert node.stop() == 0
    assert own.wait_close(1)[0] == 1001
    own.close()
