"""The real wrangler from npm, pinned, against a node of the test. A proxy in between records what it asks for."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from atoll.api.cloudflare import account_id
from atoll.engine.process.engine_process import find_files
from tests.running import Atoll

ROOT = Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "build/wrangler"
REQUESTS = Path(__file__).resolve().parent / "requests.json"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
HEX = re.compile(r"\b[0-9a-f]{32}\b")


class Recorder(ThreadingHTTPServer):
    """Passes requests on to the node, and remembers them."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        self.node = port
        self.seen: list[str] = []
        self.statuses: list[tuple[int, bool]] = []
        super().__init__(("127.0.0.1", 0), Passing)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/client/v4"


class Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorder

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)) or None
        if self.headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        dropped = ("host", "transfer-encoding", "connection", "content-length")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
        node = http.client.HTTPConnection("127.0.0.1", self.server.node, timeout=60)
        node.request(self.command, self.path, body, headers | {"Host": f"localhost:{self.server.node}"})
        response = node.getresponse()
        content = response.read()
        node.close()
        self.server.seen.append(f"{self.command} {self.path.removeprefix('/client/v4')}")
        if response.headers.get_content_type() == "application/json":
            self.server.statuses.append((response.status, json.loads(content)["success"]))
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def log_message(self, *_: object) -> None:
        pass


class Wrangler:
    def __init__(self, node: Atoll, token: str, tenant: str, home: Path) -> None:
        self.node = node
        self.recorder = Recorder(node.port)
        self.account = account_id(tenant)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CLOUDFLARE_API_BASE_URL": self.recorder.base,
            "CLOUDFLARE_API_TOKEN": token,
            "CLOUDFLARE_ACCOUNT_ID": self.account,
            "WRANGLER_SEND_METRICS": "false",
            "WRANGLER_HIDE_BANNER": "true",
            "NO_COLOR": "1",
            "CI": "1",
        }

    def run(self, folder: Path, *words: str, sent: str | None = None, fails: bool = False, **more: str) -> str:
        """The output of a command, which must succeed, or fail if that is expected."""
        self.recorder.seen.clear()
        command = [find_files().node, TOOL / "node_modules/wrangler/bin/wrangler.js", *words]
        environment = {name: value for name, value in (self.environment | more).items() if value}
        ran = subprocess.run(
            command, cwd=folder, env=environment, input=sent or "", capture_output=True, text=True,
            timeout=60,
        )  # fmt: skip
        output = ran.stdout + ran.stderr
        assert (ran.returncode != 0) == fails, f"wrangler {' '.join(words)}:\n{output}\n{self.node.log()[-2000:]}"
        assert all((status < 400) == success for status, success in self.recorder.statuses)
        return output

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """The answer to a request of the test itself."""
        headers = {"Authorization": f"Bearer {self.environment['CLOUDFLARE_API_TOKEN']}"}
        content = None if body is None else json.dumps(body)
        found: dict[str, Any] = self.node.request(
            method, f"localhost:{self.node.port}", f"/client/v4{path}", content, headers
        ).json
        return found

    def asked(self, *names: str) -> list[str]:
        """The requests of the last command, without what differs between runs. `names` are those of the test."""
        found = set()
        for line in self.recorder.seen:
            text = HEX.sub("ID", UUID.sub("UUID", line.replace(self.account, "A")))
            for name in names:
                text = text.replace(name, "S")
            found.add(text)
        return sorted(found)


def expected(command: str) -> list[str]:
    """The recorded requests of a command. With RECORD=1 in the environment they are recorded anew."""
    found: list[str] = json.loads(REQUESTS.read_text()).get(command, [])
    return found


def check_requests(command: str, asked: list[str]) -> None:
    if os.environ.get("RECORD"):
        known = json.loads(REQUESTS.read_text()) if REQUESTS.exists() else {}
        REQUESTS.write_text(json.dumps(dict(sorted((known | {command: asked}).items())), indent=1) + "\n")
    assert asked == expected(command)
