"""The S3 endpoint: before a signature is verified, and with the key of a tenant."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from atoll.bindings.r2.s3.sigv4 import UNSIGNED, SignedRequest, read_query, sign
from tests.running import Answer
from tests.stalls.flood import connections, flood
from tests.stalls.stage import Stage, attack

KB, MB = 1 << 10, 1 << 20
NOBODY = {"access_key_id": "nobody", "secret_access_key": "x" * 64}
CHUNKS = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


def host_of(stage: Stage) -> str:
    return stage.node.host("s3")


def stamp() -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


def keys_of(stage: Stage) -> dict[str, str]:
    made = stage.control("POST", "/api/r2-credentials", {"name": "attack"})
    assert made.status == 201, made.text
    found: dict[str, str] = made.json
    for bucket in ("attack",):
        stage.control("POST", "/api/r2", {"name": bucket})
    return found


def signed(
    stage: Stage, keys: Mapping[str, str], method: str, path: str, query: str = "", payload: str = UNSIGNED
) -> dict[str, str]:
    headers = {"host": host_of(stage), "x-amz-date": stamp(), "x-amz-content-sha256": payload}
    request = SignedRequest(method, path.encode(), read_query(query.encode()), headers)
    headers["authorization"] = sign(request, keys["access_key_id"], keys["secret_access_key"], "auto")
    return headers


def ask(stage: Stage, keys: Mapping[str, str], method: str, path: str, query: str = "", body: Any = None) -> Answer:
    return stage.node.request(method, host_of(stage), f"{path}?{query}", body, signed(stage, keys, method, path, query))


@attack("S3: a signature that names one header ten thousand times")
def repeated_names(stage: Stage) -> Iterator[None]:
    at = stamp()
    names = "host;x-amz-content-sha256;x-amz-date;" + ";".join(["a"] * 10_000)
    credential = f"AK/{at[:8]}/auto/s3/aws4_request"
    headers = {
        "x-amz-date": at, "x-amz-content-sha256": UNSIGNED, "a": "x " * (20 * KB),
        "authorization": f"AWS4-HMAC-SHA256 Credential={credential},SignedHeaders={names},Signature={'0' * 64}",
    }  # fmt: skip
    yield
    answer = stage.node.request("GET", host_of(stage), "/bucket/key", None, headers)
    assert answer.status == 400, answer.text[:300]


@attack("S3: queries of thousands of parameters, pipelined")
def many_parameters(stage: Stage) -> Iterator[None]:
    at = stamp()
    head = [f"GET /bucket/key?{'&'.join(['a'] * 8_000)} HTTP/1.1", f"Host: {host_of(stage)}", f"x-amz-date: {at}"]
    credential = f"AK/{at[:8]}/auto/s3/aws4_request"
    names = "host;x-amz-content-sha256;x-amz-date"
    head += [
        f"x-amz-content-sha256: {UNSIGNED}",
        f"authorization: AWS4-HMAC-SHA256 Credential={credential},SignedHeaders={names},Signature={'0' * 64}",
    ]
    data = "\r\n".join([*head, "", ""]).encode()
    with connections(stage.node.connect, 4) as clients:
        yield
        flood(clients, data * 20)


@attack("S3: documents of a million elements, attributes and levels", memory_mb=128)
def odd_documents(stage: Stage) -> Iterator[None]:
    keys = keys_of(stage)
    bodies = (
        b"<Delete>" + b"<Object/>" * 400_000 + b"</Delete>",
        b"<Delete><Object>" + b"<a/>" * 1_000_000 + b"</Object></Delete>",
        b"<Delete>" + b"<a>" * 1_300_000,
        b"<Delete " + b"".join(b'a%d="" ' % number for number in range(400_000)) + b"/>",
        b"<Delete>" + b"x" * (4 * MB - 100) + b"</Delete>",
    )
    yield
    for body in bodies:
        assert ask(stage, keys, "POST", "/attack", "delete=", body).status == 400


@attack("S3: a body in signed chunks of one byte")
def tiny_chunks(stage: Stage) -> Iterator[None]:
    keys = keys_of(stage)
    headers = signed(stage, keys, "PUT", "/attack/tiny", payload=CHUNKS)
    head = ["PUT /attack/tiny HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    head += ["x-amz-decoded-content-length: 100000000", "transfer-encoding: chunked"]
    piece = b"1\r\nx\r\n" * 10_000
    with connections(stage.node.connect, 4) as clients:
        yield
        first = "\r\n".join([*head, "", ""]).encode()
        flood(clients, b"%x\r\n%b\r\n" % (len(piece), piece), first=first)


@attack("S3: preflights against as many CORS rules as there may be")
def preflights(stage: Stage) -> Iterator[None]:
    keys_of(stage)
    rule = {
        "allowed_origins": [f"https://o{number}.example" for number in range(99)] + ["*"],
        "allowed_methods": ["PUT"],
        "allowed_headers": [f"x{number}" for number in range(99)],
    }
    few = {**rule, "allowed_origins": ["*"], "allowed_headers": [f"x{number}" for number in range(99)]}
    wild = {**few, "allowed_headers": [f"x{number}*" for number in range(100)]}
    for rules in ([few] * 100, [wild]):
        answer = stage.control("PUT", "/api/r2/attack/cors", {"rules": rules})
        assert answer.status in (200, 204), answer.text[:300]
    names = ", ".join([*(f"x{number}z" for number in range(99)), "none"])
    lines = ["Origin: https://a.example", "Access-Control-Request-Method: PUT"]
    data = "\r\n".join([
        "OPTIONS /attack/k HTTP/1.1", f"Host: {host_of(stage)}", *lines,
        f"Access-Control-Request-Headers: {names}", "", "",
    ]).encode()  # fmt: skip
    with connections(stage.node.connect, 4) as clients:
        yield
        flood(clients, data * 20)
