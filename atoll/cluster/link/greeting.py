"""How two nodes meet: an HTTP/1.1 upgrade in which each proves that it has the cluster's key, and the seal of frames.

    GET /atoll-link HTTP/1.1                          HTTP/1.1 101 Switching Protocols
    Upgrade: atoll-link                               Upgrade: atoll-link
    Atoll-Link: versions from to nonce mac            Atoll-Link: version nonce mac

The key is derived from the root key. A MAC covers method, path and everything it follows; that of the answer covers the
nonce of the question too. Both nonces make the keys of this connection, so nothing of an earlier one can be sent again,
whatever the clocks say. Frames are sealed with AES-256-GCM, numbered in each direction: none can be read, changed, left
out or put elsewhere.
"""

from __future__ import annotations

import hmac
import re
import secrets
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

OLDEST: Final = 1  # protocol versions that this release speaks
NEWEST: Final = 1
MAX_HEAD: Final = 2_048
TAG: Final = 16
LENGTH: Final = Struct("<I")
FIRST_LINE: Final = "GET /atoll-link HTTP/1.1"
FIELD: Final = re.compile(rb"^atoll-link: ([\x21-\x7e ]{1,600})\r$", re.MULTILINE | re.IGNORECASE)
QUESTION: Final = re.compile(r"(\d{1,4})-(\d{1,4}) ([0-9a-f]{1,64}) ([0-9a-f]{1,64}) ([0-9a-f]{32}) ([0-9a-f]{64})")
ANSWER: Final = re.compile(r"(\d{1,4}) ([0-9a-f]{32}) ([0-9a-f]{64})")


class GreetingFailed(Exception):
    """The other side is not a node of this cluster, or not the one that was meant. `status` is for the answer."""

    def __init__(self, words: str, status: int = 403) -> None:
        super().__init__(words)
        self.status = status


class LinkQuestion(NamedTuple):
    sender: str  # its session
    nonce: str


class Seal:
    """One direction of one connection."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._box: AESGCM = AESGCM(key)
        self._count = 0

    def _nonce(self) -> bytes:
        self._count += 1
        return self._count.to_bytes(12, "little")

    def close(self, frame: bytes) -> bytes:
        sealed = self._box.encrypt(self._nonce(), frame, None)
        return LENGTH.pack(len(sealed)) + sealed

    def open(self, sealed: bytes) -> bytes:
        """Raises GreetingFailed."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._box.decrypt(self._nonce(), sealed, None)
        except InvalidTag:
            raise GreetingFailed("a frame was changed on its way") from None


class LinkSeals(NamedTuple):
    out: Seal
    into: Seal


def ask(key: bytes, me: str, to: str) -> tuple[bytes, str]:
    """The request of the node that connects, and its nonce."""
    nonce = secrets.token_hex(16)
    said = f"{OLDEST}-{NEWEST} {me} {to} {nonce}"
    value = f"{said} {_mac(key, 'question', FIRST_LINE, said)}"
    lines = FIRST_LINE, f"Host: {to}", "Connection: Upgrade", "Upgrade: atoll-link", f"Atoll-Link: {value}", "", ""
    return "\r\n".join(lines).encode(), nonce


def read_question(key: bytes, me: str, head: bytes) -> LinkQuestion:
    """Raises GreetingFailed."""
    found = QUESTION.fullmatch(_field(head)) if head.startswith(FIRST_LINE.encode() + b"\r\n") else None
    if found is None:
        raise GreetingFailed("this is the link between nodes", 400)
    oldest, newest, sender, to, nonce, mac = found.groups()
    said = f"{oldest}-{newest} {sender} {to} {nonce}"
    if not hmac.compare_digest(mac, _mac(key, "question", FIRST_LINE, said)):
        raise GreetingFailed("the root key of the other node is not that of this cluster")
    if to != me:
        raise GreetingFailed("the node that is meant is not here any more", 421)
    if int(oldest) > NEWEST or int(newest) < OLDEST:
        raise GreetingFailed(f"this node speaks versions {OLDEST} to {NEWEST} of the link", 426)
    return LinkQuestion(sender, nonce)


def answer(key: bytes, me: str, question: LinkQuestion) -> tuple[bytes, LinkSeals]:
    nonce = secrets.token_hex(16)
    mac = _mac(key, "answer", str(NEWEST), me, question.nonce, nonce)
    lines = "HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: atoll-link"
    head = "\r\n".join((*lines, f"Atoll-Link: {NEWEST} {nonce} {mac}", "", "")).encode()
    return head, _seals(key, question.nonce, nonce, is_asker=False)


def refuse(error: GreetingFailed) -> bytes:
    words = str(error).encode()
    head = f"HTTP/1.1 {error.status} Refused\r\nConnection: close\r\nContent-Length: {len(words)}\r\n\r\n"
    return head.encode() + words


def read_answer(key: bytes, to: str, nonce: str, head: bytes) -> LinkSeals:
    """Raises GreetingFailed."""
    if not head.startswith(b"HTTP/1.1 101 "):
        raise GreetingFailed(f"it answered {head[:60].decode('latin-1').splitlines()[0]!r}")
    found = ANSWER.fullmatch(_field(head))
    if found is None:
        raise GreetingFailed("it is not a node")
    version, theirs, mac = found.groups()
    if not hmac.compare_digest(mac, _mac(key, "answer", version, to, nonce, theirs)):
        raise GreetingFailed("it does not have the root key of this cluster")
    if not OLDEST <= int(version) <= NEWEST:
        raise GreetingFailed(f"it speaks version {version} of the link, this node {OLDEST} to {NEWEST}")
    return _seals(key, nonce, theirs, is_asker=True)


def _seals(key: bytes, asker: str, answerer: str, *, is_asker: bool) -> LinkSeals:
    forth, back = (Seal(hmac.digest(key, f"{way} {asker} {answerer}".encode(), "sha256")) for way in ("forth", "back"))
    return LinkSeals(forth, back) if is_asker else LinkSeals(back, forth)


def _field(head: bytes) -> str:
    found = FIELD.search(head)
    return found[1].decode("ascii") if found is not None else ""


def _mac(key: bytes, *parts: str) -> str:
    return hmac.digest(key, "\n".join(parts).encode(), "sha256").hex()
