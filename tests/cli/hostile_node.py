"""A real node behind a hostile proxy: every string of its JSON answers ends in terminal escapes and a forged line."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ATTACK = "\x1b]0;t\x07\x1b]52;c;eA==\x07\x9b2J\r\x08\x7f\u202e\ud800\nerror: forged\nhint: forged"
# What a terminal must never receive, apart from newline and tab.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]")
SKIPPED = ("host", "connection", "content-length")


def poisoned(value: Any) -> Any:
    if isinstance(value, str):
        return value + ATTACK
    if isinstance(value, list):
        return [poisoned(each) for each in value]
    if isinstance(value, dict):
        return {name: poisoned(each) for name, each in value.items()}
    return value


@contextmanager
def hostile_node(port: int) -> Iterator[str]:
    """The address of a proxy that passes requests on to the node at `port`."""

    class Handler(BaseHTTPRequestHandler):
        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in SKIPPED}
            node = http.client.HTTPConnection("127.0.0.1", port)
            node.request(self.command, self.path, body or None, {**headers, "Host": f"localhost:{port}"})
            answer = node.getresponse()
            raw = answer.read()
            node.close()
            if "json" in answer.headers.get("content-type", ""):
                raw = json.dumps(poisoned(json.loads(raw))).encode()
            self.send_response(answer.status)
            self.send_header("content-type", answer.headers.get("content-type", "text/plain"))
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
