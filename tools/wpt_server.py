"""Serves a checkout of web-platform-tests with the suite's own server: `python tools/wpt_server.py ROOT`.

It is a separate program, because the suite brings its own libraries. It prints two ports, the second for tests that
need another origin, and serves until its standard input ends.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
import uuid

ROOT = sys.argv[1]
HOST = "localhost"
REWRITES = [("GET", "/resources/WebIDLParser.js", "/resources/webidl2/lib/webidl2.js")]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def serve_sockets(port: int) -> None:
    """The suite's WebSocket server, with the handlers of its tests."""
    from pywebsocket3 import standalone  # type: ignore[import-not-found]

    folder = f"{ROOT}/websockets/handlers"
    options, _ = standalone._parse_args_and_config(["-H", "127.0.0.1", "-p", str(port), "-d", folder, "-w", folder])
    options.cgi_directories = []
    options.is_executable_method = None
    threading.Thread(target=standalone.WebSocketServer(options).serve_forever, daemon=True).start()


def main() -> None:
    sys.path.insert(0, f"{ROOT}/tools")
    __import__("localpaths")  # makes the suite's libraries importable
    from wptserve import config, server, stash  # type: ignore[import-not-found]

    class Builder(config.ConfigBuilder):  # type: ignore[misc]
        def _get_ports(self, data: dict[str, dict[str, list[int]]]) -> dict[str, list[int]]:
            """Tests also name ports without a server."""
            return data["ports"]

    ports = {
        "http": [free_port(), free_port()],
        **{scheme: [free_port(), free_port()] for scheme in ("https", "ws", "wss", "h2", "http-local", "http-public")},
    }
    logger = logging.getLogger("wptserve")
    logger.setLevel(logging.CRITICAL)
    builder = Builder(
        logger,
        {"www", "www1", "www2", "天気の良い日", "élève"},
        {"nonexistent"},
        browser_host=HOST,
        alternate_hosts={"alt": "127.0.0.1"},
        doc_root=ROOT,
        ports=ports,
    )
    with stash.StashServer(None, authkey=str(uuid.uuid4())), builder as settings:
        for port in ports["http"]:
            server.WebTestHttpd(
                "127.0.0.1", port, doc_root=ROOT, rewrites=REWRITES, config=settings, bind_address=True
            ).start()
        serve_sockets(ports["ws"][0])
        print(*ports["http"], flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
