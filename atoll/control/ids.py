"""Random ids: short enough to read aloud, long enough never to collide."""

from __future__ import annotations

import secrets

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
HEX = "0123456789abcdef"
LENGTH = 12


def random_letters(letters: str = LETTERS) -> str:
    return "".join(secrets.choice(letters) for _ in range(LENGTH))


def random_id(prefix: str) -> str:
    # The id of a version begins the host of its preview. Hexadecimal digits are hardly ever a word, so that the hosts
    # of previews and the names that people choose for workers do not get in each other's way.
    return f"{prefix}_{random_letters(HEX if prefix == 'version' else LETTERS)}"
