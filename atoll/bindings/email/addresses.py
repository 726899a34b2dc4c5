"""Addresses of email, as far as Atoll accepts them: no quoted local parts, no comments, ASCII only."""

from __future__ import annotations

import re

MAX_ADDRESS = 254
ADDRESS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9.-]{1,253}")
# The name before an address has no character that could begin a second address.
NAMES = (re.compile(r'\A"(?:[^"\\]|\\.)*"'), re.compile(r'[^"<>,;:@()\\\[\]]*'))
MAX_MAILBOX = 2_000


def is_address(text: object) -> bool:
    return isinstance(text, str) and len(text) <= MAX_ADDRESS and ADDRESS.fullmatch(text) is not None


def address_of(value: str) -> str | None:
    """The only address of a From header; None if it has none, several, or a form that readers may take differently."""
    value = value.strip(" \t")
    if len(value) > MAX_MAILBOX:
        return None
    if is_address(value):
        return value
    name, mark, address = value.rpartition("<")
    is_named = mark and address.endswith(">") and any(pattern.fullmatch(name.rstrip(" \t")) for pattern in NAMES)
    return address[:-1] if is_named and is_address(address[:-1]) else None


def same_address(one: str, other: str) -> bool:
    return one.lower() == other.lower()
