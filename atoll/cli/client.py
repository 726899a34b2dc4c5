"""The control API as commands call it: one method per kind of request. Every failure is an error with a hint."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn
from urllib.parse import quote, urlencode, urlsplit

from atoll import __version__
from atoll.cli.dial import LOOPBACK, is_local_name, open_connection
from atoll.cli.profiles import NodeTarget
from atoll.cli.talk import Failed, fail
from atoll.manifests.every import command_groups

TIMEOUT = 60
PAGE = 1_000  # entries per page of a list
TLS_HINT = "without TLS write http://; for a private certificate authority set SSL_CERT_FILE to its certificate"
NO_NODE = "check that --api is a control host of Atoll"
# Requests that the API's hints name, and the commands that send them.
COMMANDS = [
    (re.compile(r"\bGET /api/workers/([^/\s]+)/secrets\b"), r"`atoll secret list --worker \1`"),
    (
        re.compile(r"\bGET /api/workers/([^/\s]+)/versions/(\S+)/secrets\b"),
        r"`atoll versions secret list --worker \1 --version \2`",
    ),
    (re.compile(r"\bGET /api/workers/([^/\s]+)/versions\b"), r"`atoll versions list \1`"),
    (re.compile(r"\bGET /api/workers\b"), "`atoll workers`"),
    (re.compile(r"\b(?:POST|PUT) /api/workers(?:/\S+)?"), "`atoll deploy`"),
    (re.compile(r"\bGET /api/reserved-hosts\b"), "`atoll hosts list`"),
    (re.compile(r"\bGET /api/session\b"), "`atoll dashboard`"),
    (re.compile(r"\bwith force\b"), "with --force"),
    (re.compile(r"\bGET /api/tenants\b"), "`atoll tenant list`"),
    (re.compile(r"\bGET /api/tokens\b"), "`atoll token list`"),
    (
        re.compile(r"\bsend Authorization: Bearer <token>"),
        "pass one with --token or ATOLL_TOKEN, or store it: `atoll profile add NAME --api URL --token -`",
    ),
    (re.compile(r"\bleave the header out\b"), "leave --tenant out"),
]
COMMANDS += [
    (re.compile(phrase), command) for group in command_groups().values() for phrase, command in group.phrases.items()
]


def in_commands(hint: str) -> str:
    """A hint of the API, with commands in place of requests."""
    for pattern, command in COMMANDS:
        hint = pattern.sub(command, hint)
    return hint


class ApiRefusal(Failed):
    """The node answered with an error: `code` is its stable error code, `status` the HTTP status."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        place = f"\n    {error['file']}:{error['line']}:{error.get('column', 0)}" if error.get("line") else ""
        hint = in_commands(str(error.get("hint", "")))
        super().__init__(str(error.get("message", f"the node answered {status}")) + place, hint)
        self.status = status
        self.code = error.get("code", 0)
        self.error = error

    def facts(self) -> dict[str, Any]:
        return {**self.error, "message": self.message, "hint": self.hint, "status": self.status}


class Client:
    def __init__(self, target: NodeTarget, *, host: str = "", timeout: float = TIMEOUT) -> None:
        self.target = target
        self._host = host  # the Host header, where it is not the address
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

    def all(self, path: str, field: str, most: int | None = None, **query: object) -> list[dict[str, Any]]:
        """The entries of a list, or the first `limit` of them. Follows cursors to the last page."""
        found: list[dict[str, Any]] = []
        cursor = ""
        while most is None or len(found) < most:
            limit = PAGE if most is None else min(PAGE, most - len(found))
            page = self.get(path, **query, limit=limit, cursor=cursor)
            found += page[field]
            before, cursor = cursor, page.get("cursor", "")
            if not cursor:
                break
            if cursor == before:
                fail(f"{self.target.api} sent the same page twice", NO_NODE)
        return found

    def post(self, path: str, body: object = None) -> Any:
        return self.call("POST", path, body)

    def put(self, path: str, body: object) -> Any:
        return self.call("PUT", path, body)

    def delete(self, path: str) -> Any:
        return self.call("DELETE", path)

    def call(self, method: str, path: str, body: object = None, *, query: dict[str, object] | None = None) -> Any:
        """Send a JSON request and return the `data` of the answer. Raises Failed."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        response = self.send(method, path, data, headers, query)
        raw = self._read(response)
        try:
            return json.loads(raw, object_hook=ApiAnswer) if raw.strip() else None
        except ValueError:
            fail(f"{self.target.api} sent an answer that is not JSON", NO_NODE)

    def send(
        self,
        method: str,
        path: str,
        data: bytes | Iterable[bytes] | None = None,
        headers: dict[str, str] | None = None,
        query: dict[str, object] | None = None,
    ) -> http.client.HTTPResponse:
        """Send any request. The response is a success whose body is not read yet. Raises Failed."""
        given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        target = self._parts.path + path + (f"?{urlencode(given)}" if given else "")
        try:
            response = self._request(method, target, data, headers or {})
        except (OSError, http.client.HTTPException) as error:
            if "SSL" in type(error).__name__:
                fail(f"{self.target.api} has no TLS certificate that this machine trusts: {error}", TLS_HINT)
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            fail(f"{self.target.api} does not answer: {why[:1].lower()}{why[1:]}", self._unreachable())
        except ValueError:  # a character that a header cannot hold
            fail("the token or the tenant has characters that cannot be sent", "check --token and --tenant")
        if response.status >= 400:
            raise ApiRefusal(response.status, _error_of(self._read(response), response.status))
        return response

    def lines(self, path: str, **query: object) -> Iterator[str]:
        """The lines of a live stream, as they arrive."""
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

    def _request(
        self, method: str, path: str, data: bytes | Iterable[bytes] | None, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        connection = self._connect()
        headers = {"User-Agent": f"atoll/{__version__}", **headers}
        if self._host:
            headers["Host"] = self._host
        if self.target.token:
            headers["Authorization"] = f"Bearer {self.target.token}"
        if self.target.tenant:
            headers["X-Atoll-Tenant"] = self.target.tenant
        try:
            connection.request(method, path, data, headers)
        except (BrokenPipeError, ConnectionResetError):
            if data is None or isinstance(data, bytes):
                raise
            # The node refused the upload before its end: its answer says why
        return connection.getresponse()

    def _connect(self) -> http.client.HTTPConnection:
        self.close()
        host, port = self._parts.hostname or "", self._parts.port
        self._connection = open_connection(host, port, secure=self._parts.scheme == "https", seconds=self.timeout)
        return self._connection

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        try:
            return response.read()
        except (OSError, http.client.HTTPException) as error:
            fail(f"the connection to {self.target.api} broke: {error}", "try again")

    @property
    def is_local(self) -> bool:
        """Whether the node is on this machine."""
        host = self._parts.hostname or ""
        return is_local_name(host) or host in LOOPBACK

    def _unreachable(self) -> str:
        here = "start a node with `atoll serve`, or pass the address of another with --api"
        return here if self.is_local else "check --api or the profile"


class ApiAnswer(dict[str, Any]):
    """The fields of an answer. Raises Failed if one is missing: another program may answer at the node's address."""

    def __missing__(self, name: str) -> NoReturn:
        fail(f"the answer has no `{name}`, so it is not from a node", NO_NODE)


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
