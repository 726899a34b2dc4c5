"""The control API as commands call it: one method per request, every failure an error with a hint."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Iterator
from typing import Any, NoReturn
from urllib.parse import quote, urlencode, urlsplit

from atoll import __version__
from atoll.cli.profiles import Target
from atoll.cli.talk import Failed, fail

TIMEOUT = 60
NO_NODE = "does --api lead to a control host of Atoll?"
# What the API tells its callers to do, as those of the command line do it.
COMMANDS = [
    (re.compile(r"\bGET /api/workers/([^/\s]+)/versions\b"), r"`atoll versions \1`"),
    (re.compile(r"\bGET /api/workers\b"), "`atoll workers`"),
    (re.compile(r"\b(?:POST|PUT) /api/workers(?:/\S+)?"), "`atoll deploy`"),
    (re.compile(r"\bGET /api/kv lists them, POST\b"), "`atoll kv namespaces` lists them, `atoll kv create`"),
    (re.compile(r"\bGET /api/queues\b"), "`atoll queues list`"),
    (re.compile(r"\bGET /api/tenants\b"), "`atoll tenant list`"),
    (re.compile(r"\bGET /api/tokens\b"), "`atoll token list`"),
]


class Refusal(Failed):
    """The node said no; `code` is its permanent number for the reason, `status` HTTP's."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        place = f"\n    {error['file']}:{error['line']}:{error.get('column', 0)}" if error.get("line") else ""
        hint = str(error.get("hint", ""))
        for pattern, command in COMMANDS:
            hint = pattern.sub(command, hint)
        super().__init__(str(error.get("message", f"the node answered {status}")) + place, hint)
        self.status = status
        self.code = error.get("code", 0)
        self.error = error

    def facts(self) -> dict[str, Any]:
        return {**self.error, "message": self.message, "hint": self.hint, "status": self.status}


class Client:
    def __init__(self, target: Target, *, host: str = "", timeout: float = TIMEOUT) -> None:
        self.target = target
        self._host = host  # a Host header other than the address says
        self.timeout = timeout
        self._parts = urlsplit(target.api)
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What commands call

    def get(self, path: str, **query: object) -> Any:
        return self.call("GET", path, query=query)

    def post(self, path: str, body: object = None) -> Any:
        return self.call("POST", path, body)

    def put(self, path: str, body: object) -> Any:
        return self.call("PUT", path, body)

    def delete(self, path: str) -> Any:
        return self.call("DELETE", path)

    def call(self, method: str, path: str, body: object = None, *, query: dict[str, object] | None = None) -> Any:
        """A JSON request; returns what the answer holds. Raises Failed."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        response = self.send(method, path, data, headers, query)
        raw = self._read(response)
        try:
            return json.loads(raw, object_hook=Answer) if raw.strip() else None
        except ValueError:
            fail(f"{self.target.api} answered with something else than JSON", NO_NODE)

    def send(
        self,
        method: str,
        path: str,
        data: bytes | None = None,
        headers: dict[str, str] | None = None,
        query: dict[str, object] | None = None,
    ) -> http.client.HTTPResponse:
        """Any request; the answer is a success and not yet read. Raises Failed."""
        given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        target = self._parts.path + path + (f"?{urlencode(given)}" if given else "")
        try:
            response = self._request(method, target, data, headers or {})
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            fail(f"{self.target.api} does not answer: {why[:1].lower()}{why[1:]}", self._unreachable())
        except ValueError:  # what cannot stand in a header
            fail("the token or the tenant has letters that cannot be sent", "check --token and --tenant")
        if response.status >= 400:
            raise Refusal(response.status, _error_of(self._read(response), response.status))
        return response

    def lines(self, path: str, **query: object) -> Iterator[str]:
        """The lines of an answer that does not end, as they come."""
        self.timeout = 3600
        response = self.send("GET", path, headers={"Accept": "text/event-stream"}, query=query)
        try:
            for line in response:
                yield line.decode("utf-8", "replace").rstrip("\r\n")
        except (OSError, http.client.HTTPException) as error:
            fail(f"the connection to {self.target.api} broke: {error}", "start the command again")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # How

    def _request(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> http.client.HTTPResponse:
        connection = self._connect()
        headers = {"User-Agent": f"atoll/{__version__}", **headers}
        if self._host:
            headers["Host"] = self._host
        if self.target.token:
            headers["Authorization"] = f"Bearer {self.target.token}"
        if self.target.tenant:
            headers["X-Atoll-Tenant"] = self.target.tenant
        connection.request(method, path, data, headers)
        return connection.getresponse()

    def _connect(self) -> http.client.HTTPConnection:
        self.close()
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(host, port, timeout=self.timeout, context=context)
        else:
            self._connection = http.client.HTTPConnection(host, port, timeout=self.timeout)
        return self._connection

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        try:
            return response.read()
        except (OSError, http.client.HTTPException) as error:
            fail(f"the connection to {self.target.api} broke: {error}", "try again")

    @property
    def is_local(self) -> bool:
        """Whether the node is on this machine."""
        return self._parts.hostname in ("localhost", "127.0.0.1", "::1")

    def _unreachable(self) -> str:
        here = "start a node with `atoll serve`, or name another with --api"
        return here if self.is_local else "check --api or the profile"


class Answer(dict[str, Any]):
    """What a node answered. Something else may stand at its address, and answer too."""

    def __missing__(self, name: str) -> NoReturn:
        fail(f"the answer has no `{name}`, so it is not of a node", NO_NODE)


def _error_of(raw: bytes, status: int) -> dict[str, Any]:
    try:
        error = json.loads(raw)["error"]
        if isinstance(error, dict):
            return error
    except (ValueError, KeyError, TypeError):
        pass
    text = raw[:200].decode("utf-8", "replace").strip()
    return {"message": f"the node answered {status}: {text}", "hint": NO_NODE}


def segment(text: str) -> str:
    """A name as one part of a path."""
    return quote(text, safe="")
