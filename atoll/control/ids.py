"""Names that nobody chose: random, short enough to read aloud, long enough never to meet again."""

from __future__ import annotations

import secrets

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
LENGTH = 12


def random_letters() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def random_id(prefix: str) -> str:
    return f"{prefix}_{random_letters()}"
