"""Requests of workers as bytes for a server, and heads of responses as text for a worker.

The worker's half of fetch() has checked all of it; an engine is hostile, so it is checked here again. Nothing that
frames a message (lengths, codings, connections) is taken from a worker: a request holds exactly one request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from atoll.bindings.fetch.decode import CODINGS
from atoll.egress.client import Target
from atoll.egress.exchange import pairs_of
from atoll.errors import InvalidArgument
from atoll.tracing import Trace

METHOD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}")
URL = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9._~!$&'()*+,;=%-]+)(?::(\d{1,5}))?(/[!-~]*|\?[!-~]*)?", re.ASCII)
# Values as https://fetch.spec.whatwg.org/#header-value has them: nothing in them can end a line.
HEAD = re.compile(r"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+: ?[^\0\r\n\u0100-\U0010ffff]*\r\n)*")
MAX_HEAD = 128 << 10
MAX_URL = 64 << 10
MAX_REMEMBERED_HEAD = 256
NOT_IN_VALUE = re.compile(r"[\r\n\0]")
FORBIDDEN_METHODS = frozenset({"CONNECT", "TRACE", "TRACK"})

# Headers of a connection, or about the message: ours to say.
NOT_FORWARDED = frozenset({
    "host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "transfer-encoding", "te", "trailer",
    "upgrade", "expect", "content-length", "http2-settings", "cf-worker", "cdn-loop", "cf-ew-via",
})  # fmt: skip
# What the handshake of a WebSocket says besides: ours too.
OF_HANDSHAKE = frozenset({
    "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "sec-websocket-accept",
})  # fmt: skip
# What a front tells a worker of its client. A worker that calls another one is no client, and may not claim to be one:
# who answers on a host may be anybody's worker. A bound one is of its own tenant, and is told what it knows.
OF_CLIENT = frozenset({
    "cf-connecting-ip", "cf-connecting-ipv6", "cf-ipcountry", "cf-ray", "cf-visitor", "cf-atoll-tls", "x-real-ip",
    "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "true-client-ip", "forwarded",
})  # fmt: skip
OF_NOBODY = frozenset({"cf-atoll-tls"})  # of the connection, which is in no request
# Headers of a response that were of the connection it came on.
OF_CONNECTION = frozenset({
    "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "transfer-encoding", "te", "trailer",
    "upgrade",
})  # fmt: skip
# Headers of a response that are not simply handed on.
LOOKED_AT = ("\ncontent-encoding:", "\nupgrade:", "\nproxy-authenticate:")
# What we ask for when the worker has no wish of its own, and then undo before it sees the body.
ACCEPT_ENCODING = "gzip, br, zstd"
USER_AGENT = "Atoll"  # unless the worker says something else: some servers answer nobody who does not say who he is
METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class Wanted(Struct):
    """One request as the worker asked for it, checked."""

    method: str
    target: Target
    path: str  # with query
    url: str
    headers: list[tuple[str, str]]
    streamed: bool = False  # the body comes in pieces,
    length: int | None = None  # of so many bytes, if known
    upgrade: bool = False  # it asks for a WebSocket
    service: object = None  # the name of a service binding that is to answer
    is_ours: bool = field(default=False)  # we asked for an encoding, and undo it

    @property
    def authority(self) -> str:
        target = self.target
        return target.host if target.port == (443 if target.tls else 80) else f"{target.host}:{target.port}"

    @property
    def protocols(self) -> list[str]:
        """The subprotocols that a request for a WebSocket offers."""
        values = [value for name, value in self.headers if name.lower() == "sec-websocket-protocol"]
        return [name.strip() for value in values for name in value.split(",") if name.strip()]

    @property
    def chunked(self) -> bool:
        return self.streamed and self.length is None

    def tell_trace(self, trace: Trace) -> None:
        """Let the trace go on where the request goes. A worker that keeps a trace of its own is not meddled with."""
        told = [value for name, value in self.headers if name.lower() == "traceparent"]
        if all(f"-{trace.id:032x}-" in value.lower() for value in told):
            self.headers = [pair for pair in self.headers if pair[0].lower() != "traceparent"]
            self.headers.append(("traceparent", trace.header))


def read_wanted(meta: Mapping[str, Any]) -> Wanted:
    """What a worker asks for. InvalidArgument when it cannot be asked for."""
    method, url, head = meta.get("method"), meta.get("url"), meta.get("head", "")
    if not isinstance(method, str) or METHOD.fullmatch(method) is None or method.upper() in FORBIDDEN_METHODS:
        raise InvalidArgument("fetch: this method cannot be used")
    if not isinstance(url, str) or len(url) > MAX_URL or (found := URL.fullmatch(url)) is None:
        raise InvalidArgument("fetch: the URL is not one of http or https, or is too long")
    scheme, host, port, path = found.groups()
    number = int(port) if port else (443 if scheme == "https" else 80)
    if not 0 < number < 65536 or len(host) > 253:
        raise InvalidArgument("fetch: the URL names no port or host that could exist")
    if not isinstance(head, str) or len(head) > MAX_HEAD or HEAD.fullmatch(head) is None:
        raise InvalidArgument("fetch: the headers are malformed or longer than 128 KB")
    streamed, length = meta.get("streamed") is True, meta.get("length")
    if isinstance(length, bool) or not (length is None or (isinstance(length, int) and 0 <= length < 2**53)):
        raise InvalidArgument("fetch: the length of the body is no number")
    path = path or "/"
    wanted = Wanted(method, Target(scheme == "https", host, number), path if path[0] == "/" else f"/{path}", url, [])
    wanted.service = meta.get("service")
    wanted.streamed, wanted.length = streamed, length if streamed else None
    wanted.upgrade = meta.get("upgrade") is True and method == "GET" and not streamed
    dropped = NOT_FORWARDED | OF_HANDSHAKE if wanted.upgrade else NOT_FORWARDED
    for line in head.split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        if name.lower() not in dropped:
            wanted.headers.append((name, value.strip(" \t")))
    names = {name.lower() for name, _ in wanted.headers}
    if "accept" not in names:
        wanted.headers.append(("accept", "*/*"))
    if "user-agent" not in names:
        wanted.headers.append(("user-agent", USER_AGENT))
    if "accept-encoding" not in names:
        # https://fetch.spec.whatwg.org/#concept-http-network-or-cache-fetch: a part of something encoded is no use.
        if "range" in names:
            wanted.headers.append(("accept-encoding", "identity"))
        else:
            wanted.is_ours = True
    return wanted


def lines(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in pairs)


def request_bytes(wanted: Wanted, body: bytes, hops: int, zone: str, handshake: str = "") -> bytes:
    """The request as it goes to a server, with the body unless that is streamed."""
    framing = handshake.encode() or framing_of(wanted.method, body)
    if wanted.streamed:
        length = wanted.length
        framing = b"transfer-encoding: chunked\r\n" if length is None else b"content-length: %d\r\n" % length
    start = f"{wanted.method} {wanted.path}".encode()
    return b"".join((start, common_lines(wanted, hops, zone), framing, b"\r\n", body))


def common_lines(wanted: Wanted, hops: int, zone: str) -> bytes:
    """All of a request head that has nothing to do with its path and its body."""
    ours = f"accept-encoding: {ACCEPT_ENCODING}\r\n" if wanted.is_ours else ""
    return (
        f" HTTP/1.1\r\nhost: {wanted.authority}\r\n{lines(wanted.headers)}{ours}"
        f"cf-worker: {zone}\r\ncf-ew-via: {hops + 1}\r\ncdn-loop: atoll; loops={hops + 1}\r\n"
    ).encode("latin-1")


def framing_of(method: str, body: bytes) -> bytes:
    """What says where a body ends that is all here."""
    return b"content-length: %d\r\n" % len(body) if body or method in METHODS_WITH_BODY else b""


def inner_head(wanted: Wanted, zone: str, body_length: int | None) -> bytes:
    """The request as the head of a call to another worker of this node."""
    framing = inner_framing(wanted.length if wanted.streamed else body_length)
    if wanted.upgrade:
        framing = b"upgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n"
    return f"{wanted.method} {wanted.url}\n".encode("latin-1") + inner_lines(wanted, zone) + framing


def inner_lines(wanted: Wanted, zone: str) -> bytes:
    """All of such a head that has nothing to do with its URL and its body."""
    claims = OF_CLIENT if wanted.service is None else OF_NOBODY
    told = lines(pair for pair in wanted.headers if pair[0].lower() not in claims)
    return f"host: {wanted.authority}\r\n{told}cf-worker: {zone}\r\n".encode("latin-1")


def inner_framing(length: int | None) -> bytes:
    return b"content-length: %d\r\n" % length if length else b""


@lru_cache(maxsize=512)
def _remembered_text(raw: bytes, is_ours: bool) -> tuple[str, str]:
    return _response_text(raw, is_ours)


def response_text(raw: bytes, is_ours: bool = False) -> tuple[str, str]:
    """The header lines a worker sees, and the coding of the body ("" when it has none, or one that we cannot undo).

    A coding that was ours to ask for (`is_ours`) and is undone before the worker reads is not told. Headers of the
    connection that every worker's Headers leave out (web/fetch/header_list.py) may still be there.
    """
    # Those of workers are mostly short, and word for word the ones before.
    return _remembered_text(raw, is_ours) if len(raw) <= MAX_REMEMBERED_HEAD else _response_text(raw, is_ours)


def _response_text(raw: bytes, is_ours: bool) -> tuple[str, str]:
    text = raw.decode("latin-1")
    lower = f"\n{text.lower()}"
    if not any(name in lower for name in LOOKED_AT) and HEAD.fullmatch(text) is not None:
        return text, ""
    pairs = [
        (name, value)
        for name, value in pairs_of(raw)
        if name not in OF_CONNECTION and METHOD.fullmatch(name) is not None and NOT_IN_VALUE.search(value) is None
    ]
    codings = [
        coding.strip().lower() for name, value in pairs if name == "content-encoding" for coding in value.split(",")
    ]
    coding = CODINGS.get(codings[0], "") if len(codings) == 1 else ""
    if coding and is_ours:
        pairs = [pair for pair in pairs if pair[0] not in ("content-encoding", "content-length")]
    return lines(pairs), coding
