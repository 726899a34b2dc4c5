"""node:http connects to the same server as in Node: no path, port, host or later change leads elsewhere."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote_from_bytes

import pytest

from atoll.project.fetch import node_folder
from tests.running import Atoll

SCRIPT = Path(__file__).parent / "node_http_targets.js"

# Node writes these on its request line unchanged. fetch cannot, so the worker gets an error.
UNSENDABLE = "must begin with"


class Named(BaseHTTPRequestHandler):
    """Answers with the request that it received."""

    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline:
            self.close_connection = True
            return
        method, _, rest = self.raw_requestline.rstrip(b"\r\n").partition(b" ")
        target = rest.rpartition(b" ")[0]
        headers: dict[str, str] = {}
        while line := self.rfile.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        path, mark, query = target.partition(b"?")
        # For a server, a byte and its escape are equal.
        shown = (
            quote_from_bytes(path, "/%:@!$&'()*+,;=~.-_")
            + mark.decode()
            + quote_from_bytes(query, "%:@!$&()*+,;=~.-_/?")
        )
        text = json.dumps([self.server.server_port, method.decode(), shown, headers.get("authorization")]).encode()
        self.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))


@pytest.fixture
def servers() -> Iterator[tuple[int, int]]:
    """Ports of the intended server and of another one."""
    both = [ThreadingHTTPServer(("127.0.0.1", 0), Named) for _ in range(2)]
    for server in both:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield both[0].server_port, both[1].server_port
    for server in both:
        server.shutdown()
        server.server_close()


def test_a_request_of_node_http_goes_where_node_sends_it(node: Atoll, servers: tuple[int, int]) -> None:
    port, other = servers
    code = f"""
      const {{ outcomes }} = await import({json.dumps(SCRIPT.as_uri())});
      console.log(JSON.stringify(await outcomes("127.0.0.1", {port}, {other})));
      process.exit();"""
    command = [node_folder() / "bin/node", "--no-warnings", "--input-type=module", "--eval", code]
    by_node = json.loads(subprocess.run(command, check=True, capture_output=True, cwd="/", timeout=60).stdout)
    node.deploy("node-http-targets", SCRIPT.read_text(), limits={"cpu_ms": 5000, "subrequests": 500})
    ours = node.get("node-http-targets", f"/127.0.0.1/{port}/{other}").json

    assert len(ours) > 100 and ours.keys() == by_node.keys()
    assert not [name for name, text in ours.items() if f"[{other}," in text], "no request may reach the other server"
    different = {}
    for name, text in by_node.items():
        is_unsendable = name.startswith(("path ", "later ")) and '"/' not in name and "reached: " in text
        if is_unsendable and UNSENDABLE in ours[name] and "ERR_INVALID_ARG_VALUE" in ours[name]:
            continue
        if ours[name] != text:
            different[name] = (text, ours[name])
    report = "\n".join(f"{name}\n  Node:  {theirs}\n  Atoll: {mine}" for name, (theirs, mine) in different.items())
    assert not different, f"{len(different)} of {len(ours)} differ\n{report}"


def test_a_body_that_fetch_cannot_send_is_an_error(node: Atoll, servers: tuple[int, int]) -> None:
    node.deploy(
        "node-http-body",
        """
        import http from "node:http";
        export default {
          fetch: (request) => new Promise((resolve) => {
            const sent = http.request({ host: "127.0.0.1", port: Number(new URL(request.url).pathname.slice(1)), method: "GET" });
            sent.on("error", (error) => resolve(new Response(`${error.name} ${error.message}`)));
            sent.on("response", () => resolve(new Response("sent without its body")));
            sent.end("body");
          }),
        };""",
    )
    assert node.get("node-http-body", f"/{servers[0]}").text.startswith("TypeError")
