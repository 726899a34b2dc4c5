"""WebSockets whose clients are at one node, and whose object is on another."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.cluster.conftest import Nodes
from tests.running import Atoll

ROOM = """
import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  fetch(request) {
    const [client, server] = Object.values(new WebSocketPair());
    if (new URL(request.url).pathname === "/held") this.ctx.acceptWebSocket(server);
    else {
      server.accept();
      server.addEventListener("message", (event) => server.send(event.data));
    }
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage(ws, message) { for (const each of this.ctx.getWebSockets()) each.send(message); }
  count() { return this.ctx.getWebSockets().length; }
}
export default { async fetch(request, env) {
  const room = env.ROOM.getByName("one");
  if (new URL(request.url).pathname === "/count") return new Response(await room.count());
  return room.fetch(request);
} }
"""


@contextmanager
def opened(node: Atoll, path: str, name: str = "room") -> Iterator[ClientConnection]:
    sock = socket.create_connection(("127.0.0.1", node.port))
    with connect(f"ws://{node.host(name)}{path}", sock=sock, max_size=None) as client:
        yield client


def test_sockets_of_all_nodes_are_in_one_room(nodes: Nodes) -> None:
    bindings = [{"type": "durable_object", "name": "ROOM", "class_name": "Room"}]
    nodes.deploy("room", ROOM, bindings=bindings, migrations=[{"tag": "v1", "new_sqlite_classes": ["Room"]}])
    with ExitStack() as stack:
        held = [stack.enter_context(opened(node, "/held")) for node in nodes.all]
        assert [node.get("room", "/count").text for node in nodes.all] == ["3"] * 3
        for number, client in enumerate(held):
            client.send(f"from {number}")
            assert [each.recv(10) for each in held] == [f"from {number}"] * 3
        large = json.dumps(["x" * 1_000] * 700)  # more than the credit of a socket
        held[2].send(large)
        assert [each.recv(20) for each in held] == [large] * 3
        held[1].close()
        nodes.all[0].wait_until(lambda: nodes.all[0].get("room", "/count").text == "2")
        for node in nodes.all:
            with opened(node, "/plain") as client:
                client.send("echo")
                assert client.recv(10) == "echo"
                client.send(large)
                assert client.recv(20) == large


def test_clients_of_an_object_whose_node_is_killed_hear_that_it_is_gone(nodes: Nodes) -> None:
    owner = nodes.add(node_name="fourth")
    script = ROOM.replace('getByName("one")', 'getByName("two")')
    nodes.deploy("lost", script, bindings=[{"type": "durable_object", "name": "ROOM", "class_name": "Room"}],
                 migrations=[{"tag": "v1", "new_sqlite_classes": ["Room"]}])  # fmt: skip
    assert owner.get("lost", "/count").text == "0"  # it is there from now on
    with opened(nodes.all[0], "/held", "lost") as client:
        client.send("hello")
        assert client.recv(10) == "hello"
        nodes.all.remove(owner)
        owner.stop(signal.SIGKILL)
        with pytest.raises(ConnectionClosed):
            client.recv(20)
    again = nodes.all[1]
    again.wait_until(lambda: again.get("lost", "/count").text == "0", 30)  # taken by another node
