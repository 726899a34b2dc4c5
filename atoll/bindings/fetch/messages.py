"""Requests of workers as bytes for a server, and heads of responses as text for a worker.

The JavaScript half of fetch() has checked the request. Engines are not trusted, so it is checked here again. Nothing
that frames a message (lengths, codings, connections) is taken from a worker: the bytes are exactly one request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from atoll.bindings.fetch.decode import CODINGS
from atoll.client_headers import CLIENT_NAME
from atoll.egress.client import Origin
from atoll.egress.exchange import pairs_of
from atoll.errors import InvalidArgument
from atoll.tracing import Trace

METHOD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}")
URL = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9._~!$&'()*+,;=%-]+)(?::(\d{1,5}))?(/[!-~]*|\?[!-~]*)?", re.ASCII)
# Values as https://fetch.spec.whatwg.org/#header-value has them: nothing in them can end a line.
# Possessive (`++`, `?+`): with a plain ` ?` a line fits in two ways, and a head that does not fit takes 2^lines steps.
HEAD = re.compile(r"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++: ?+[^\0\r\n\u0100-\U0010ffff]*+\r\n)*+")
MAX_HEAD = 128 << 10
MAX_URL = 64 << 10
MAX_TOLD = 16 << 10
TOLD = re.compile(r"(?:\{[ -~]*+)?+")
CHUNKED = b"transfer-encoding: chunked\r\n"
MAX_REMEMBERED_HEAD = 256
NOT_IN_VALUE = re.compile(r"[\r\n\0]")
FORBIDDEN_METHODS = frozenset({"CONNECT", "TRACE", "TRACK"})

# Headers about the connection or the framing: set by us only.
NOT_FORWARDED = frozenset({
    "host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "transfer-encoding", "te", "trailer",
    "upgrade", "expect", "content-length", "http2-settings", "cf-worker", "cdn-loop", "cf-ew-via",
})  # fmt: skip
# Further headers of a WebSocket handshake: set by us only.
OF_HANDSHAKE = frozenset({
    "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "sec-websocket-accept",
})  # fmt: skip
# A worker that calls another is not a client and must not pose as one: a host may belong to a worker of another tenant.
# A worker behind a service binding is of the same tenant and gets all headers, except those of a connection.
OF_CONNECTION_ALONE = re.compile(r"cf-atoll-[a-z0-9-]+")
# Headers of a response that are about its connection.
OF_CONNECTION = frozenset({
    "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "transfer-encoding", "te", "trailer",
    "upgrade",
})  # fmt: skip
# Headers of a response that are not simply passed on.
LOOKED_AT = ("\ncontent-encoding:", "\nupgrade:", "\nproxy-authenticate:")
# Sent if the worker has no accept-encoding of its own; the body is then decoded before the worker sees it.
ACCEPT_ENCODING = "gzip, br, zstd"
USER_AGENT = "Atoll"  # the default: some servers refuse requests without a user agent
METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class WantedFetch(Struct):
    """One checked request of a worker."""

    method: str
    target: Origin
    path: str  # with query
    url: str
    headers: list[tuple[str, str]]
    streamed: bool = False  # the body is streamed,
    length: int | None = None  # with this length, if known
    upgrade: bool = False  # it asks for a WebSocket
    service: object = None  # the name of the binding to call
    object: dict[str, Any] | None = None  # the Durable Object to call, as the worker names it
    told: str = ""  # request.cf for the worker that is called, as JSON
    is_ours: bool = field(default=False)  # we sent accept-encoding, and decode the body
    asked: Origin | None = None  # the server that the URL names, if the request is sent to another

    @property
    def authority(self) -> str:
        target = self.asked or self.target
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
        """Pass the trace on with the request, unless the worker has set trace headers of its own."""
        told = [value for name, value in self.headers if name.lower() == "traceparent"]
        if all(f"-{trace.id:032x}-" in value.lower() for value in told):
            self.headers = [pair for pair in self.headers if pair[0].lower() != "traceparent"]
            self.headers.append(("traceparent", trace.header))


def read_wanted(meta: Mapping[str, Any]) -> WantedFetch:
    """The request in an op. InvalidArgument if it is not valid."""
    method, url, head = meta.get("method"), meta.get("url"), meta.get("head", "")
    if not isinstance(method, str) or METHOD.fullmatch(method) is None or method.upper() in FORBIDDEN_METHODS:
        raise InvalidArgument("fetch: this method cannot be used")
    if not isinstance(url, str) or len(url) > MAX_URL or (found := URL.fullmatch(url)) is None:
        raise InvalidArgument("fetch: the URL is not one of http or https, or is too long")
    scheme, host, port, path = found.groups()
    number = int(port) if port else (443 if scheme == "https" else 80)
    if not 0 < number < 65536 or len(host) > 253:
        raise InvalidArgument("fetch: the host or port of the URL is not valid")
    if not isinstance(head, str) or len(head) > MAX_HEAD or HEAD.fullmatch(head) is None:
        raise InvalidArgument("fetch: the headers are malformed or longer than 128 KB")
    streamed, length = meta.get("streamed") is True, meta.get("length")
    if isinstance(length, bool) or not (length is None or (isinstance(length, int) and 0 <= length < 2**53)):
        raise InvalidArgument("fetch: the length of the body is not a number")
    path = path or "/"
    wanted = WantedFetch(
        method, Origin(scheme == "https", host, number), path if path[0] == "/" else f"/{path}", url, []
    )
    wanted.service, named = meta.get("service"), meta.get("object")
    wanted.object = named if isinstance(named, dict) else None
    told = meta.get("told", "")
    if not isinstance(told, str) or len(told) > MAX_TOLD or TOLD.fullmatch(told) is None:
        raise InvalidArgument("fetch: the properties in `cf` are no object, or longer than 16 KB")
    wanted.told = told
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
        # https://fetch.spec.whatwg.org/#concept-http-network-or-cache-fetch: a part of an encoded body is no use.
        if "range" in names:
            wanted.headers.append(("accept-encoding", "identity"))
        else:
            wanted.is_ours = True
    return wanted


def lines(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in pairs)


def request_bytes(wanted: WantedFetch, body: bytes, loops: str, zone: str, handshake: str = "") -> bytes:
    """The request as bytes for a server, with the body unless that is streamed."""
    framing = handshake.encode() or framing_of(wanted.method, body)
    if wanted.streamed:
        length = wanted.length
        framing = CHUNKED if length is None else b"content-length: %d\r\n" % length
    start = f"{wanted.method} {wanted.path}".encode()
    return b"".join((start, common_lines(wanted, loops, zone), framing, b"\r\n", body))


def common_lines(wanted: WantedFetch, loops: str, zone: str) -> bytes:
    """The part of a request head that does not depend on path and body. `loops` are the lines of loops.py."""
    ours = f"accept-encoding: {ACCEPT_ENCODING}\r\n" if wanted.is_ours else ""
    return (
        f" HTTP/1.1\r\nhost: {wanted.authority}\r\n{lines(wanted.headers)}{ours}cf-worker: {zone}\r\n{loops}"
    ).encode("latin-1")


def framing_of(method: str, body: bytes) -> bytes:
    """The framing header of a complete body."""
    return b"content-length: %d\r\n" % len(body) if body or method in METHODS_WITH_BODY else b""


def inner_head(wanted: WantedFetch, zone: str, body_length: int | None, others: str = "") -> bytes:
    """The request as the head of a call to another worker of this node."""
    framing = CHUNKED if wanted.chunked else inner_framing(wanted.length if wanted.streamed else body_length)
    if wanted.upgrade:
        framing = b"upgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n"
    if others:  # over a network this call would add a member; here its hops are counted
        framing += f"cdn-loop: {others}\r\n".encode()
    return f"{wanted.method} {wanted.url}\n".encode("latin-1") + inner_lines(wanted, zone) + framing


def inner_lines(wanted: WantedFetch, zone: str) -> bytes:
    """The part of such a head that does not depend on URL and body."""
    claims = CLIENT_NAME if wanted.service is None else OF_CONNECTION_ALONE
    told = lines(pair for pair in wanted.headers if claims.fullmatch(pair[0].lower()) is None)
    if wanted.told and wanted.service is not None:
        told += f"cf-atoll-cf: {wanted.told}\r\n"
    return f"host: {wanted.authority}\r\n{told}cf-worker: {zone}\r\n".encode("latin-1")


def inner_framing(length: int | None) -> bytes:
    return b"content-length: %d\r\n" % length if length else b""


@lru_cache(maxsize=512)
def _remembered_text(raw: bytes, is_ours: bool) -> tuple[str, str]:
    return _response_text(raw, is_ours)


def response_text(raw: bytes, is_ours: bool = False) -> tuple[str, str]:
    """The header lines a worker sees, and the coding of the body ("" if it has none, or one that we cannot decode).

    A coding that we asked for (`is_ours`) is decoded before the worker reads, so its header is removed. Headers of the
    connection that Headers in a worker leaves out anyway (web/fetch/header_list.js) may still be there.
    """
    # Heads from workers are mostly short and equal to earlier ones.
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
