"""Passes: how a stub of an object or an entry point travels to another worker.

A worker may send stubs of what it can reach in the arguments and results of RPC. Those values go from engine to engine,
and Python does not read them. So a stub travels as a text that says where it leads, with a MAC that proves it:

    pass <kind> <MAC, 32 hexadecimal digits> <JSON>

Keys are derived from a secret of this process, for one tenant and one scope. An engine gets the keys of the scopes that
its worker may use anyway: the objects of a namespace it is bound to, or its own entry points. The receiver of a pass
gets no key. It reaches exactly the object or entry point of the pass, with exactly its props, and nothing else.
"""

from __future__ import annotations

import hmac
import re
import secrets
from typing import Any, NamedTuple

import msgspec

from atoll.errors import InvalidArgument

SERVICE, EXPORT, OBJECT = "service", "export", "object"
MAX_PASS = 96 << 10  # characters: props or a name, with every character escaped
PASS = re.compile(rf"pass ({SERVICE}|{EXPORT}|{OBJECT}) ([0-9a-f]{{32}}) (.+)", re.DOTALL)
FORGED = "the stub is not valid: it was not made by this node, or belongs to another tenant"


class Passed(NamedTuple):
    """A pass whose MAC is right."""

    kind: str
    content: Any  # JSON, made by a worker that has the key: check its values


def is_pass(name: object) -> bool:
    return isinstance(name, str) and name.startswith("pass ")


def object_scope(namespace: str) -> str:
    return f"{OBJECT} {namespace}"


def export_scope(worker: str) -> str:
    return f"{EXPORT} {worker}"


class Passes:
    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def key(self, tenant: str, scope: str) -> bytes:
        return hmac.digest(self._secret, msgspec.json.encode([tenant, scope]), "sha256")

    def of_service(self, tenant: str, resource: str) -> str:
        """The pass of a service binding."""
        return f"pass {SERVICE} {_mac(self.key(tenant, SERVICE), resource)} {resource}"

    def read(self, tenant: str, text: str) -> Passed:
        """What a worker of a tenant holds. InvalidArgument if it is forged or malformed."""
        found = PASS.fullmatch(text) if len(text) <= MAX_PASS else None
        if found is None:
            raise InvalidArgument("the stub is malformed")
        kind, mac, said = found.groups()
        try:
            content = msgspec.json.decode(said)
            right = _mac(self.key(tenant, _scope(kind, content)), said)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise InvalidArgument("the stub is malformed") from None
        if not hmac.compare_digest(mac, right):
            raise InvalidArgument(FORGED)
        return Passed(kind, content)


def _scope(kind: str, content: object) -> str:
    """The scope whose key must have signed a pass: the content itself names it."""
    if kind == SERVICE:
        return SERVICE
    if not isinstance(content, list) or len(content) != 3 or not isinstance(content[0], str):
        raise InvalidArgument("the stub is malformed")
    return object_scope(content[0]) if kind == OBJECT else export_scope(content[0])


def _mac(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256")[:16].hex()
