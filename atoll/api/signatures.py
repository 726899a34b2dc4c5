"""Texts that prove themselves: JSON Web Tokens that the node signs for itself (HS256), for a session or a link.

The key is random and new at each start of the node: what was signed before a restart is refused afterwards.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from typing import Any

import msgspec

HEAD = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=")
MAX_TOKEN = 4096


class Signer:
    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def sign(self, purpose: str, seconds: int, **claims: object) -> str:
        """A token for one purpose, valid for some seconds."""
        body = msgspec.json.encode({**claims, "purpose": purpose, "exp": int(time.time()) + seconds})
        signed = HEAD + b"." + base64.urlsafe_b64encode(body).rstrip(b"=")
        return (signed + b"." + self._seal(signed)).decode()

    def _seal(self, signed: bytes) -> bytes:
        return base64.urlsafe_b64encode(hmac.digest(self._key, signed, hashlib.sha256)).rstrip(b"=")

    def check(self, purpose: str, token: str) -> dict[str, Any] | None:
        """The claims of a token; None if it is forged, expired or for another purpose."""
        if len(token) > MAX_TOKEN or not token.isascii():
            return None
        signed, _, seal = token.encode().rpartition(b".")
        if not hmac.compare_digest(seal, self._seal(signed)):
            return None
        try:
            body = signed.partition(b".")[2]
            claims: dict[str, Any] = msgspec.json.decode(base64.urlsafe_b64decode(body + b"=="))
        except (binascii.Error, msgspec.DecodeError, RecursionError):
            return None
        return claims if claims["purpose"] == purpose and claims["exp"] > time.time() else None
