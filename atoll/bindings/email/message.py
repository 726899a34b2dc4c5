"""Checks of messages: headers only, read with bounds. Bodies are never parsed here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from atoll.bindings.email.addresses import address_of, same_address
from atoll.bindings.email.faults import EmailFault, invalid

MAX_HEAD = 128 << 10  # bytes of all headers
MAX_FIELDS = 1_000
MAX_HOPS = 30  # `Received` headers: mail that runs in a circle collects them
MAX_REFERENCES = 100
NAME = re.compile(r"[!-9;-~]{1,200}")
MESSAGE_ID = re.compile(r"<[!-;=?-~]{1,900}>")
TRACE = {"received", "return-path", "delivered-to"}  # only servers write these


class HeaderField(NamedTuple):
    name: str  # in lower case
    value: str


class MessageHead:
    def __init__(self, fields: list[HeaderField]) -> None:
        self.fields = fields

    def all(self, name: str) -> list[str]:
        return [field.value for field in self.fields if field.name == name]

    def one(self, name: str) -> str | None:
        found = self.all(name)
        return found[0].strip() if found else None

    @property
    def message_id(self) -> str | None:
        found = self.all("message-id")
        value = found[0].strip() if len(found) == 1 else ""
        return value if MESSAGE_ID.fullmatch(value) else None


def read_head(message: bytes) -> MessageHead:
    """The headers of a message. EmailFault if they are not headers, or too many."""
    head = message[:MAX_HEAD].replace(b"\r\n", b"\n")
    end = head.find(b"\n\n")
    if end < 0 and len(message) > MAX_HEAD:
        raise invalid(f"could not parse email: the headers are longer than {MAX_HEAD >> 10} KB")
    head = head[:end] if end >= 0 else head.rstrip(b"\n")
    if b"\r" in head or b"\0" in head:
        raise invalid("could not parse email: a header has a CR or NUL")
    return MessageHead(list(_fields(head.decode("latin-1"))))


def _fields(text: str) -> Iterator[HeaderField]:
    name, parts, count = "", [""], 0
    for line in text.split("\n"):
        if line[:1] in (" ", "\t") and name:
            parts.append(line)
            continue
        if name:
            yield HeaderField(name, "".join(parts))
        found, mark, value = line.partition(":")
        count += 1
        if not mark or not NAME.fullmatch(found.rstrip(" \t")) or count > MAX_FIELDS:
            raise invalid("could not parse email: a line is no header")
        name, parts = found.rstrip(" \t").lower(), [value]
    if name:
        yield HeaderField(name, "".join(parts))


def check_outgoing(message: bytes, mail_from: str) -> str:
    """Checks a message that a worker sends. Returns its Message-ID."""
    head = read_head(message)
    senders = head.all("from")
    address = address_of(senders[0]) if len(senders) == 1 else None
    if address is None or not same_address(address, mail_from):
        raise invalid("From: header does not match mail from")
    for name in ("sender", "resent-from", "resent-sender"):
        for value in head.all(name):
            found = address_of(value)
            if found is None or not same_address(found, mail_from):
                raise invalid(f"{name.title()}: header does not match mail from")
    if any(field.name in TRACE for field in head.fields):
        raise invalid("invalid headers set")
    if head.message_id is None:
        raise invalid("invalid message-id")
    return head.message_id


def is_replyable(head: MessageHead, mail_from: str) -> bool:
    """Automatic mail gets no reply, or two machines would write to each other for ever."""
    for name, harmless in (("auto-submitted", "no"), ("x-auto-response-suppress", "none")):
        value = head.one(name)
        if value is not None and value.lower() != harmless:
            return False
    references = head.one("references")
    if (head.one("in-reply-to") is None) != (references is None):
        return False
    return bool(mail_from) and head.message_id is not None and (references or "").count("@") < MAX_REFERENCES


def check_reply(original: MessageHead, reply: bytes) -> bytes:
    """Checks that a message answers another. Returns it with a References header."""
    head = read_head(reply)
    answered = head.one("in-reply-to")
    if answered is None:
        raise invalid("no In-Reply-To header found in reply message")
    if answered != original.message_id:
        raise invalid("In-Reply-To does not match original Message-ID")
    before = " ".join((original.one("references") or "").split())
    found = head.one("references")
    if found is None:
        return f"References: {before} {answered}".replace(":  ", ": ").encode("latin-1") + b"\r\n" + reply
    if answered not in found or before not in " ".join(found.split()):
        raise invalid("provided References header is invalid")
    return reply


def too_many_hops(head: MessageHead) -> bool:
    return len(head.all("received")) >= MAX_HOPS


def with_headers(message: bytes, fields: object) -> bytes:
    """A message with more headers: those that forward() may add."""
    if not isinstance(fields, list) or len(fields) > 50:
        raise invalid("invalid headers set")
    lines = []
    for field in fields:
        name, value = field if isinstance(field, list) and len(field) == 2 else ("", "")
        is_text = isinstance(name, str) and isinstance(value, str) and NAME.fullmatch(name) and len(value) <= 900
        if not is_text or not name.lower().startswith("x-") or not value.isprintable() or not value.isascii():
            raise EmailFault(
                "E_VALIDATION_ERROR", "forward() adds headers whose names begin with X-, with ASCII values"
            )
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode() + message
