"""Signature Version 4 of AWS: who sent a request, and that nothing of it was changed. Pure: the time is an argument.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html

A request is signed by its headers or, if it is a link, by its query. Either way the signature covers the method, the
path, the query, the named headers and the hash of the body. Host and every x-amz header must be among the named ones,
so nobody on the way can add one.
"""

from __future__ import annotations

import calendar
import hashlib
import hmac
import re
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from atoll.bindings.r2.s3.faults import S3Fault

ALGORITHM = "AWS4-HMAC-SHA256"
SKEW = 900  # seconds that the clock of a client may be wrong
MAX_EXPIRES = 604_800  # seconds that a link is valid
SAFE = "-_.~"
# Nobody is known before the signature is computed, so its cost is bounded here. A link has about ten parameters.
MAX_PARAMETERS = 200
MAX_SIGNED = 400  # headers that a signature covers
UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY = hashlib.sha256(b"").hexdigest()
AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256\s+Credential=([^,\s]+)\s*,\s*SignedHeaders=([^,\s]+)\s*,\s*Signature=([0-9a-f]{64})"
)


class SignedRequest(NamedTuple):
    """The parts of a request that a signature covers."""

    method: str
    path: bytes  # as it was sent
    query: Sequence[tuple[bytes, bytes]]  # decoded
    headers: Mapping[str, str]  # lower case


class Signature(NamedTuple):
    """What a request says about its signature."""

    access_key: str
    date: str  # YYYYMMDD
    region: str
    at: str  # YYYYMMDDTHHMMSSZ
    signed_headers: tuple[str, ...]
    signature: str
    payload: str  # the hash of the body, or how the body is signed
    is_link: bool

    @property
    def scope(self) -> str:
        return f"{self.date}/{self.region}/s3/aws4_request"


def read_signature(request: SignedRequest, now: float) -> Signature:
    """The signature of a request, not verified yet. S3Fault if there is none, or its time has passed."""
    query = {name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in request.query}
    if "X-Amz-Signature" in query or "X-Amz-Algorithm" in query:
        return _of_link(request, query, now)
    found = AUTHORIZATION.fullmatch(request.headers.get("authorization", "").strip())
    if found is None:
        if "authorization" in request.headers:
            raise S3Fault("AuthorizationHeaderMalformed", f"Sign requests with {ALGORITHM}.")
        raise S3Fault("AccessDenied", "Requests must be signed: configure your client with an access key of this node.")
    credential, names, signature = found.groups()
    at = request.headers.get("x-amz-date", "")
    payload = request.headers.get("x-amz-content-sha256", "")
    if not payload:
        raise S3Fault("InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
    read = _signature(credential, names, signature, at, payload, False)
    if abs(_moment(at) - now) > SKEW:
        raise S3Fault(
            "RequestTimeTooSkewed", "The difference between the request time and the server's time is too large."
        )
    return _covering(read, request)


def _of_link(request: SignedRequest, query: Mapping[str, str], now: float) -> Signature:
    if query.get("X-Amz-Algorithm") != ALGORITHM:
        raise S3Fault("AuthorizationQueryParametersError", f"X-Amz-Algorithm must be {ALGORITHM}.")
    at, expires = query.get("X-Amz-Date", ""), query.get("X-Amz-Expires", "")
    if not expires.isdecimal() or len(expires) > 7 or not 1 <= int(expires) <= MAX_EXPIRES:
        raise S3Fault("AuthorizationQueryParametersError", f"X-Amz-Expires must be from 1 to {MAX_EXPIRES} seconds.")
    signature, names = query.get("X-Amz-Signature", ""), query.get("X-Amz-SignedHeaders", "")
    payload = request.headers.get("x-amz-content-sha256", query.get("X-Amz-Content-Sha256", UNSIGNED))
    read = _signature(query.get("X-Amz-Credential", ""), names, signature, at, payload, True)
    signed = _moment(at)
    if now > signed + int(expires):
        raise S3Fault("AccessDenied", "Request has expired")
    if signed > now + SKEW:
        raise S3Fault(
            "RequestTimeTooSkewed", "The link is not valid yet: check the clock of the machine that signed it."
        )
    return _covering(read, request)


def _signature(credential: str, names: str, signature: str, at: str, payload: str, is_link: bool) -> Signature:
    parts = credential.split("/")
    if len(parts) != 5 or parts[3:] != ["s3", "aws4_request"] or not at.startswith(parts[1]):
        raise S3Fault(
            "AuthorizationHeaderMalformed",
            "The credential is malformed: expected <key>/<date>/<region>/s3/aws4_request.",
        )
    signed = tuple(names.lower().split(";"))
    if len(signed) > MAX_SIGNED or len(set(signed)) < len(signed):  # each is copied into the text that is hashed
        raise S3Fault(
            "AuthorizationHeaderMalformed", f"SignedHeaders names a header twice, or more than {MAX_SIGNED} headers."
        )
    return Signature(parts[0], parts[1], parts[2], at, signed, signature, payload, is_link)


def _moment(at: str) -> int:
    try:
        return calendar.timegm(time.strptime(at, "%Y%m%dT%H%M%SZ"))
    except ValueError:
        raise S3Fault("AccessDenied", "The date of the signature is missing or malformed.") from None


def _covering(signature: Signature, request: SignedRequest) -> Signature:
    """Refuse a signature that leaves out headers which change what is done."""
    present = [name for name in request.headers if name.startswith("x-amz-")]
    missing = [name for name in ("host", *present) if name not in signature.signed_headers]
    if signature.is_link:  # the body of a link is not known when it is signed
        missing = [name for name in missing if name != "x-amz-content-sha256"]
    if missing:
        raise S3Fault(
            "AccessDenied", f"There were headers present in the request which were not signed: {missing[0][:60]}"
        )
    return signature


def signing_key(secret: str, signature: Signature) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (signature.date, signature.region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def verify(request: SignedRequest, signature: Signature, key: bytes) -> None:
    """S3Fault unless the request was signed with the key."""
    expected = _computed(request, signature, key)
    if not hmac.compare_digest(expected.encode(), signature.signature.encode("utf-8", "replace")):
        raise S3Fault(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided. Check your key and signing"
            " method.",
        )


def sign(request: SignedRequest, access_key: str, secret: str, region: str) -> str:
    """The Authorization header of a request to another service. It covers all headers that are there already."""
    at, names = request.headers["x-amz-date"], tuple(sorted(request.headers))
    payload = request.headers["x-amz-content-sha256"]
    unsigned = Signature(access_key, at[:8], region, at, names, "", payload, False)
    computed = _computed(request, unsigned, signing_key(secret, unsigned))
    credential = f"{access_key}/{unsigned.scope}"
    return f"{ALGORITHM} Credential={credential}, SignedHeaders={';'.join(names)}, Signature={computed}"


def _computed(request: SignedRequest, signature: Signature, key: bytes) -> str:
    canonical = canonical_request(request, signature)
    text = "\n".join((ALGORITHM, signature.at, signature.scope, hashlib.sha256(canonical.encode()).hexdigest()))
    return hmac.digest(key, text.encode(), "sha256").hex()


def canonical_request(request: SignedRequest, signature: Signature) -> str:
    path = quote(unquote_to_bytes(request.path), safe=SAFE + "/")
    pairs = sorted(
        (quote(name, safe=SAFE), quote(value, safe=SAFE))
        for name, value in request.query
        if not (signature.is_link and name == b"X-Amz-Signature")
    )
    headers = "".join(
        f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in signature.signed_headers
    )
    return "\n".join((
        request.method, path, "&".join(f"{name}={value}" for name, value in pairs), headers,
        ";".join(signature.signed_headers), signature.payload,
    ))  # fmt: skip


def chunk_signature(key: bytes, signature: Signature, previous: str, digest: str) -> str:
    """The signature of one chunk of a body, which follows the one before."""
    text = "\n".join((f"{ALGORITHM}-PAYLOAD", signature.at, signature.scope, previous, EMPTY, digest))
    return hmac.digest(key, text.encode(), "sha256").hex()


def trailer_signature(key: bytes, signature: Signature, previous: str, trailer: bytes) -> str:
    digest = hashlib.sha256(trailer).hexdigest()
    text = "\n".join((f"{ALGORITHM}-TRAILER", signature.at, signature.scope, previous, digest))
    return hmac.digest(key, text.encode(), "sha256").hex()


def read_query(text: bytes) -> list[tuple[bytes, bytes]]:
    """The parameters of a query, decoded. A plus sign is a plus sign: clients of S3 write %20."""
    found: list[tuple[bytes, bytes]] = []
    for part in text.split(b"&"):
        if len(found) == MAX_PARAMETERS:
            raise S3Fault("InvalidArgument", f"The query has more than {MAX_PARAMETERS} parameters.")
        if part:
            name, _, value = part.partition(b"=")
            found.append((unquote_to_bytes(name), unquote_to_bytes(value)))
    return found
