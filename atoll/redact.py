"""Removes secrets from the record of a request: values of credential headers, and ids in URLs that may be credentials.

The rules are those of Cloudflare's tail workers, so that logs look the same.
"""

from __future__ import annotations

import re

REDACTED = "REDACTED"
MAX_URL = 2_048
MAX_HEADERS = 4_096  # bytes of the header block that are read
MAX_VALUE = 512

SECRET_NAME = re.compile(r"^(set-)?cookie$|auth|key|secret|token|jwt")
RUN = re.compile(r"[0-9A-Za-z_+-]{21,}")
SEPARATORS = str.maketrans("", "", "-_+")
HEX = re.compile(r"[0-9A-Fa-f]{32,}")


def redacted_url(url: str) -> str:
    """A URL in which everything that looks like an id, long hexadecimal or base64, is replaced."""
    return RUN.sub(_redacted_run, url[:MAX_URL])


def _redacted_run(found: re.Match[str]) -> str:
    run = found[0]
    letters = run.translate(SEPARATORS)
    if HEX.fullmatch(letters):
        return REDACTED
    uppers = sum("A" <= letter <= "Z" for letter in run)
    lowers = sum("a" <= letter <= "z" for letter in run)
    digits = sum("0" <= letter <= "9" for letter in run)
    return REDACTED if uppers >= 2 and lowers >= 2 and digits >= 2 else run


def redacted_headers(block: bytes) -> dict[str, str]:
    """The headers of a request by lower-case name; headers of the same name are joined. Credentials are replaced."""
    headers: dict[str, str] = {}
    for line in block[:MAX_HEADERS].decode("latin-1").split("\r\n"):
        name, found, value = line.partition(":")
        if not found:
            continue
        name = name.lower()
        value = REDACTED if SECRET_NAME.search(name) else value.strip(" \t")[:MAX_VALUE]
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
