"""Signatures of S3 requests: a vector of AWS, clocks, chunks, and every kind of tampering."""

from __future__ import annotations

import asyncio
import base64
import calendar
import hashlib
import time
import zlib
from collections.abc import AsyncIterator

import pytest

from atoll.bindings.r2.s3.documents import read_document
from atoll.bindings.r2.s3.faults import S3Fault
from atoll.bindings.r2.s3.payload import BodyChecks, ChunkedBody, checked
from atoll.bindings.r2.s3.sigv4 import (
    Signature,
    SignedRequest,
    chunk_signature,
    read_query,
    read_signature,
    signing_key,
    trailer_signature,
    verify,
)

# https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html, "Example: GET Object"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
AT = calendar.timegm(time.strptime("20130524T000000Z", "%Y%m%dT%H%M%SZ"))
HEADERS = {
    "host": "examplebucket.s3.amazonaws.com",
    "range": "bytes=0-9",
    "x-amz-content-sha256": hashlib.sha256(b"").hexdigest(),
    "x-amz-date": "20130524T000000Z",
    "authorization": "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
    "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
    "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
}
VECTOR = SignedRequest("GET", b"/test.txt", [], HEADERS)


def check(request: SignedRequest, now: float = AT, secret: str = SECRET) -> Signature:
    signature = read_signature(request, now)
    verify(request, signature, signing_key(secret, signature))
    return signature


def test_a_vector_of_aws_is_right() -> None:
    assert check(VECTOR).access_key == "AKIAIOSFODNN7EXAMPLE"


@pytest.mark.parametrize(
    ("request_", "now", "reason"),
    [
        (VECTOR, AT + 901, "RequestTimeTooSkewed"),
        (VECTOR, AT - 901, "RequestTimeTooSkewed"),
        (VECTOR._replace(method="PUT"), AT, "SignatureDoesNotMatch"),
        (VECTOR._replace(path=b"/other.txt"), AT, "SignatureDoesNotMatch"),
        (VECTOR._replace(query=[(b"acl", b"")]), AT, "SignatureDoesNotMatch"),
        (VECTOR._replace(headers={**HEADERS, "range": "bytes=0-99"}), AT, "SignatureDoesNotMatch"),
        (VECTOR._replace(headers={**HEADERS, "host": "evil.example"}), AT, "SignatureDoesNotMatch"),
        (VECTOR._replace(headers={**HEADERS, "x-amz-content-sha256": "0" * 64}), AT, "SignatureDoesNotMatch"),
        (VECTOR._replace(headers={**HEADERS, "x-amz-meta-role": "admin"}), AT, "AccessDenied"),
        (VECTOR._replace(headers={**HEADERS, "x-amz-date": "20130524T000001Z"}), AT, "SignatureDoesNotMatch"),
        (VECTOR._replace(headers={**HEADERS, "x-amz-date": "20130525T000000Z"}), AT, "AuthorizationHeaderMalformed"),
        (VECTOR._replace(headers={**HEADERS, "x-amz-date": "20130524"}), AT, "AccessDenied"),
        (VECTOR._replace(headers={**HEADERS, "authorization": "Bearer x"}), AT, "AuthorizationHeaderMalformed"),
        (VECTOR._replace(headers={"host": "x"}), AT, "AccessDenied"),
        (
            VECTOR._replace(headers={k: v for k, v in HEADERS.items() if k != "x-amz-content-sha256"}),
            AT,
            "InvalidRequest",
        ),
    ],
)
def test_a_request_that_is_changed_or_late_is_refused(request_: SignedRequest, now: float, reason: str) -> None:
    with pytest.raises(S3Fault) as caught:
        check(request_, now)
    assert caught.value.reason == reason


def test_another_secret_is_refused() -> None:
    with pytest.raises(S3Fault):
        check(VECTOR, secret=SECRET[:-1] + "x")


# Chunked bodies

KEY = b"k" * 32
SEED = "5" * 64


def signed_as(payload: str) -> Signature:
    return Signature("AK", "20130524", "auto", "20130524T000000Z", ("host",), SEED, payload, False)


def encoded(signature: Signature, chunks: list[bytes], trailer: bytes = b"") -> bytes:
    previous, out = SEED, b""
    for chunk in [*chunks, b""]:
        previous = chunk_signature(KEY, signature, previous, hashlib.sha256(chunk).hexdigest())
        out += b"%x;chunk-signature=%b\r\n%b" % (len(chunk), previous.encode(), chunk + b"\r\n" if chunk else b"")
    if trailer:
        out += trailer + b"\r\nx-amz-trailer-signature:"
        out += trailer_signature(KEY, signature, previous, trailer + b"\n").encode() + b"\r\n"
    return out + b"\r\n"


async def decoded(signature: Signature, data: bytes, step: int = 7, headers: dict[str, str] | None = None) -> bytes:
    async def source() -> AsyncIterator[bytes]:
        for first in range(0, len(data), step):
            yield data[first : first + step]

    checks = BodyChecks(signature, headers or {})
    body = ChunkedBody(source(), signature, KEY, checks)
    return b"".join([piece async for piece in checked(body.pieces(), checks)])


@pytest.mark.parametrize("step", [1, 7, 100_000])
async def test_signed_chunks_are_unwrapped(step: int) -> None:
    signature = signed_as("STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
    assert await decoded(signature, encoded(signature, [b"hello ", b"\r\nworld"]), step) == b"hello \r\nworld"
    assert await decoded(signature, encoded(signature, []), step) == b""


async def test_chunks_that_are_changed_cut_or_reordered_are_refused() -> None:
    signature = signed_as("STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
    good = encoded(signature, [b"hello ", b"world!"])
    size = good.index(b"hello ") + 8
    for bad in (
        good.replace(b"world", b"w0rld"),
        good[size : 2 * size] + good[:size] + good[2 * size :],  # the second chunk first
        good[:size] + good[2 * size :],  # without the second
        good[: size * 2],  # without an end
        good[:20],
        b"zz;chunk-signature=" + good[19:],
        b"6\r\n" + good[good.index(b"hello ") :],  # without a signature
        b"x" * 10_000,
    ):
        with pytest.raises(S3Fault) as caught:
            await decoded(signature, bad)
        assert caught.value.reason in ("SignatureDoesNotMatch", "IncompleteBody")


async def test_hashes_after_the_body_are_checked() -> None:
    crc = base64.b64encode(zlib.crc32(b"data").to_bytes(4, "big"))
    headers = {"x-amz-trailer": "x-amz-checksum-crc32"}
    plain = signed_as("STREAMING-UNSIGNED-PAYLOAD-TRAILER")
    body = b"4\r\ndata\r\n0\r\nx-amz-checksum-crc32:" + crc + b"\r\n\r\n"
    assert await decoded(plain, body, headers=headers) == b"data"
    with pytest.raises(S3Fault, match="CRC32"):
        await decoded(plain, body.replace(b"data", b"date"), headers=headers)
    signature = signed_as("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER")
    signed = encoded(signature, [b"data"], b"x-amz-checksum-crc32:" + crc)
    assert await decoded(signature, signed, headers=headers) == b"data"
    with pytest.raises(S3Fault, match="trailer is wrong"):
        await decoded(signature, signed.replace(crc, b"AAAAAA=="), headers=headers)
    unsigned = encoded(signature, [b"data"])[:-2] + b"x-amz-checksum-crc32:" + crc + b"\r\n\r\n"
    with pytest.raises(S3Fault, match="not signed"):
        await decoded(signature, unsigned, headers=headers)


async def test_documents_of_strangers_are_read_with_care() -> None:
    good = b'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Object><Key>a&amp;b</Key></Object></Delete>'
    assert await read_document(good, "Delete", "Object") == [{"Key": "a&b"}]
    laughs = b'<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa">]><Delete>&a;</Delete>'
    for bad in (b"", b"<Delete>", b"<Other/>", b"\xff\xfe", laughs, laughs.decode().encode("utf-16"), b"<a>" * 1000):
        with pytest.raises(S3Fault) as caught:
            await read_document(bad, "Delete", "Object")
        assert caught.value.reason == "MalformedXML"


# Before a signature is verified nobody is known, so a stranger must not be able to make it costly


def authorized(names: str) -> SignedRequest:
    before, mark, _ = HEADERS["authorization"].partition("SignedHeaders=")
    shown = f"{before}{mark}{names},Signature={'0' * 64}"
    return VECTOR._replace(headers={**HEADERS, "a": "x " * 20_000, "authorization": shown})


@pytest.mark.parametrize("names", [";".join(["a"] * 10_000), "host;a;A", ";".join(f"h{n}" for n in range(401))])
def test_a_header_that_is_signed_many_times_is_not_copied_for_each(names: str) -> None:
    with pytest.raises(S3Fault) as caught:
        read_signature(authorized(f"x-amz-content-sha256;x-amz-date;{names}"), AT)
    assert caught.value.reason == "AuthorizationHeaderMalformed"


def test_a_link_cannot_name_a_header_many_times_either() -> None:
    link = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": "AK/20130524/auto/s3/aws4_request",
        "X-Amz-Date": "20130524T000000Z", "X-Amz-Expires": "60", "X-Amz-SignedHeaders": "host;" + "a;" * 5_000,
        "X-Amz-Signature": "0" * 64,
    }  # fmt: skip
    query = [(name.encode(), value.encode()) for name, value in link.items()]
    with pytest.raises(S3Fault, match="twice"):
        read_signature(SignedRequest("GET", b"/b/k", query, {"host": "h", "a": "x" * 100_000}), AT)


def test_a_query_of_thousands_of_parameters_is_refused() -> None:
    assert len(read_query(b"&".join([b"a=b"] * 200))) == 200
    with pytest.raises(S3Fault, match="more than 200"):
        read_query(b"&".join([b"a"] * 201))


def test_spaces_in_signed_headers_count_once() -> None:
    headers = {**HEADERS, "range": "  bytes=0-9 \t "}
    assert check(VECTOR._replace(headers=headers)).access_key


async def test_many_small_chunks_leave_turns_to_others() -> None:
    """A packet may hold thousands of chunks of one byte."""
    data = b"1\r\nx\r\n" * 5_000 + b"0\r\n\r\n"
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.ensure_future(count())
    assert await decoded(signed_as("STREAMING-UNSIGNED-PAYLOAD-TRAILER"), data, len(data)) == b"x" * 5_000
    others.cancel()
    assert turns > 200


@pytest.mark.parametrize(
    "body",
    [
        b"<Delete>" + b"<Object/>" * 300_000 + b"</Delete>",
        b"<Delete>" + b"<a>" * 1_000_000,
        b"<Delete " + b"".join(b'a%d="" ' % number for number in range(40_000)) + b"/>",
        b"<Delete " + b"".join(b"a%d='' " % number for number in range(40_000)) + b"/>",
        b"<Delete><Object>" + b"<Key/>" * 51 + b"</Object></Delete>",
    ],
    ids=["elements", "levels", "attributes", "attributes in single quotes", "fields"],
)
async def test_a_document_of_very_many_parts_is_refused(body: bytes) -> None:
    with pytest.raises(S3Fault) as caught:
        await read_document(body, "Delete", "Object")
    assert caught.value.reason == "MalformedXML"


async def test_the_largest_usual_documents_are_read() -> None:
    part = b'<Part><PartNumber>%d</PartNumber><ETag>"%032x"</ETag><ChecksumSHA256>%b</ChecksumSHA256></Part>'
    checksum = base64.b64encode(bytes(32))
    parts = b"".join(part % (number, number, checksum) for number in range(1, 10_001))
    found = await read_document(b"<CompleteMultipartUpload>%b</CompleteMultipartUpload>" % parts,
                                "CompleteMultipartUpload", "Part")  # fmt: skip
    assert len(found) == 10_000 and found[-1]["PartNumber"] == "10000"
    objects = b"<Object><Key>%b</Key><VersionId/></Object>" % (b"k" * 1_024) * 1_000
    assert len(await read_document(b"<Delete>%b</Delete>" % objects, "Delete", "Object")) == 1_000
