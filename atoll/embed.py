"""A whole node inside a Python program: deploy workers, send them requests, read their logs. No port is needed.

    async with Atoll() as atoll:
        worker = await atoll.deploy("hello", script)
        response = await worker.fetch("/?name=you")

It is the same node as that of `atoll serve`, with the same engines, limits and storage, but requests skip the sockets.
Without a data folder it uses a temporary one and deletes it at the end.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from atoll.app import Node
from atoll.bindings.host import HostBinding, checked_host_bindings
from atoll.bindings.services import InnerRequest
from atoll.config import Settings
from atoll.config_loading import settings_from
from atoll.errors import AtollError, CalleeFailed, Failure
from atoll.front.control import scope_of
from atoll.front.http1 import Rejection, request_head
from atoll.front.pages import Detail, error_page
from atoll.wire.generated import ErrorCode
from atoll.workers import Version

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a valid header name or method
FORBIDDEN = re.compile(r"[\r\n\0]")
LOCAL = ("127.0.0.1", 0)

Body = bytes | str
Headers = Mapping[str, str]


class ApiRefused(AtollError):
    """The control API refused a request. `error` holds its answer: code, type, message, hint."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        hint = f" ({error['hint']})" if error.get("hint") else ""
        super().__init__(f"{error.get('message', f'status {status}')}{hint}")
        self.status = status
        self.error = error


@dataclass(frozen=True, slots=True)
class Response:
    """A worker's response. Header names are in lower case; headers of the same name are joined."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    header_lines: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Worker:
    """A deployed worker. `facts` is its description in the API."""

    atoll: Atoll
    name: str
    facts: Mapping[str, Any]

    async def fetch(
        self, path: str = "/", *, method: str = "GET", headers: Headers | None = None, body: Body = b""
    ) -> Response:
        """Send a request to the worker's own host."""
        return await self.atoll.fetch(self.atoll.url(self.name, path), method=method, headers=headers, body=body)

    async def logs(self, **question: object) -> list[dict[str, Any]]:
        """The worker's calls, newest first. Parameters are those of the API: limit, outcome, level, text …"""
        return await self.atoll.logs(self.name, **question)

    async def delete(self) -> None:
        await self.atoll.delete(self.name)


class Atoll:
    """A node. Settings are those of `atoll serve` with underscores: `Atoll(engines=2, cpu_ms=200)`.

    `data` is a folder for data that must outlive the program. With `port` the node also listens (0: any free port).
    `bindings` are bindings of this program (bindings/host.py): workers get them by an entry with their kind as `type`.
    """

    def __init__(
        self,
        data: Path | str | None = None,
        *,
        port: int | None = None,
        bindings: Sequence[HostBinding] = (),
        **settings: object,
    ) -> None:
        self._data = data
        self._bindings = checked_host_bindings(bindings)
        self._listens = port is not None
        self._settings = settings_from({"engines": 1, "spares": 1, **settings, "port": port or 0})
        self._exit = AsyncExitStack()
        self._node: Node | None = None

    async def __aenter__(self) -> Self:
        data = self._data
        if data is None:
            data = self._exit.enter_context(tempfile.TemporaryDirectory(prefix="atoll-"))
        node = Node(self._placed(Path(data)), detail=Detail.STACKS, listens=self._listens, host=self._bindings)
        try:
            await node.start()
        except BaseException:
            await self._exit.aclose()
            raise
        self._exit.push_async_callback(node.stop)
        self._node = node
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._node = None
        await self._exit.aclose()

    def _placed(self, data: Path) -> Settings:
        return replace(self._settings, data=data)

    @property
    def node(self) -> Node:
        """The node itself, for what this class does not offer."""
        if self._node is None:
            raise RuntimeError("the node is not running: use it within `async with Atoll() as atoll:`")
        return self._node

    @property
    def port(self) -> int:
        """The port it listens on; 0 if it does not listen."""
        return self.node.server.port

    # Deploying

    async def deploy(self, name: str, script: str | None = None, **fields: object) -> Worker:
        """Deploy a worker, or a new version of one. Fields are those of the API: `env`, `bindings`, `limits` …

        Raises ApiRefused with the reason if the script does not compile or start.
        """
        body = {"name": name, **({} if script is None else {"script": script}), **fields}
        exists = self.node.deployer.named(name) is not None
        facts = await self.api(*(("PUT", _path(name)) if exists else ("POST", "/api/workers")), body)
        return Worker(self, name, facts)

    async def delete(self, name: str) -> None:
        await self.api("DELETE", _path(name))

    async def api(self, method: str, path: str, body: object = None) -> Any:
        """Send any request to the control API. Returns the answer's JSON, or its bytes if it is not JSON."""
        content = b"" if body is None else json.dumps(body).encode()
        answer = await _call_app(self.node.control.app, method, path, content)
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        if answer.status >= 400:
            raise ApiRefused(answer.status, answer.json()["error"] if is_json else {"message": answer.text})
        return answer.json() if is_json else answer.body

    # Requests to workers

    def url(self, name: str, path: str = "/") -> str:
        """The address of a worker."""
        return self.node.control.url_of(name).rstrip("/") + path

    async def fetch(
        self, url: str, *, method: str = "GET", headers: Headers | None = None, body: Body = b""
    ) -> Response:
        """Send a request to the worker whose host or route matches a URL, and read the whole response.

        If the worker fails, the response is an error page with its stack, as in development. Raises ValueError if the
        request itself is invalid.
        """
        node = self.node
        content = body.encode() if isinstance(body, str) else body
        host, target, head = _request(url, method, headers or {}, content, node.settings.url_bytes)
        version = node.router.find(host, target, head)
        if version is None:
            return _failed(Failure(ErrorCode.UNKNOWN_HOST, host.decode("latin-1")))
        call = node.inner.start(InnerRequest(version, head, content))
        try:
            answer = await call.response()
            chunks = []
            while chunk := await call.read():
                chunks.append(chunk)
        except CalleeFailed as error:
            return _failed(self._explained(version, error.failure))
        finally:
            call.close()
        return _response(answer.status, answer.head, b"".join(chunks))

    def _explained(self, version: Version, failure: Failure) -> Failure:
        return self.node.deployer.maps.failure(version.id, failure)

    # Logs

    async def logs(self, name: str, **question: object) -> list[dict[str, Any]]:
        """The calls of a worker, newest first. Parameters are those of the API: limit, outcome, level, text …"""
        query = f"?{urlencode(question)}" if question else ""
        answer = await self.api("GET", f"{_path(name)}/logs{query}")
        found: list[dict[str, Any]] = answer["logs"]
        limit = int(str(question.get("limit", 100)))
        while "cursor" in answer and len(found) < limit:  # a page is limited in bytes too
            question |= {"limit": limit - len(found), "cursor": answer["cursor"]}
            answer = await self.api("GET", f"{_path(name)}/logs?{urlencode(question)}")
            found += answer["logs"]
        return found


def _path(name: str) -> str:
    return f"/api/workers/{quote(name, safe='')}"


def _request(url: str, method: str, headers: Headers, body: bytes, url_bytes: int) -> tuple[bytes, bytes, bytes]:
    """Host, target and head of a request, built like a client's and parsed like at the front."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"{url!r} is not a URL such as http://name.localhost/path")
    if not TOKEN.fullmatch(method):
        raise ValueError(f"{method!r} is not a method")
    target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._") + (f"?{parts.query}" if parts.query else "")
    lines = {"host": parts.netloc} | {name.lower(): value for name, value in headers.items()}
    if body or method in ("POST", "PUT", "PATCH"):
        lines["content-length"] = str(len(body))
    for name, value in lines.items():
        if not TOKEN.fullmatch(name) or FORBIDDEN.search(value):
            raise ValueError(f"the header {name!r} has a character that no header may have")
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    try:
        raw = f"{method} {target} HTTP/1.1\r\n{text}\r\n".encode("latin-1")
        _, host, found, _, head = request_head(raw, url_bytes)
    except (UnicodeEncodeError, Rejection) as error:
        raise ValueError(f"the request cannot be sent: {error}") from None
    return host, found, head


def _response(status: int, block: bytes, body: bytes) -> Response:
    pairs = [line.partition(":") for line in block.decode("latin-1").split("\r\n") if ":" in line]
    lines = tuple((name.lower(), value.strip()) for name, _, value in pairs)
    headers: dict[str, str] = {}
    for name, value in lines:
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Response(status, headers, body, lines)


def _failed(failure: Failure) -> Response:
    page = error_page(failure, b"text/plain", Detail.STACKS)
    return _response(page.status, page.block, page.body)


async def _call_app(app: Any, method: str, path: str, content: bytes) -> Response:
    """One request to the control API, without a socket."""
    head = f"{method} http://localhost{path}\nhost: localhost\r\ncontent-type: application/json\r\n".encode()
    parts = [{"type": "http.request", "body": content, "more_body": False}]
    start: dict[str, Any] = {}
    chunks: list[bytes] = []

    async def receive() -> dict[str, Any]:
        if not parts:  # a second receive() waits for the client to disconnect, which this one never does
            await asyncio.get_running_loop().create_future()
        return parts.pop()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
        else:
            chunks.append(message.get("body", b""))

    await app(scope_of(head, 1, LOCAL), receive, send)
    block = b"".join(b"%b: %b\r\n" % pair for pair in start["headers"])
    return _response(start["status"], block, b"".join(chunks))
