"""Paths of URLs and paths of files. A file is found by its decoded path and served on the canonical encoding of it."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

MAX_PATH: Final = 1_024  # characters of a file's path; a longer path of a URL has no file
PLAIN: Final = re.compile(r"/|(?:/[A-Za-z0-9_.!~*'()-]+)+/?")  # decoded, canonical and encoded at once
_MANY: Final = re.compile(r"/{2,}")
_SAFE: Final = "-_.!~*'()"  # as encodeURIComponent keeps them


def decoded(path: str) -> str:
    """The path that files are compared with: each segment is percent-decoded, and `//` is collapsed."""
    parts = [_part(part) if "%" in part else part for part in path.split("/")]
    return _MANY.sub("/", "/".join(parts))


def _part(part: str) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return part


def canonical(path: str) -> str:
    """A decoded path as it stands in a URL."""
    return "/".join(quote(part, safe=_SAFE) for part in path.split("/"))


def fault_of(path: str) -> str:
    """Why a file cannot have this path, or nothing. Checked before anything is stored."""
    if not path.startswith("/"):
        return "it does not begin with /"
    if len(path) > MAX_PATH:
        return f"it is longer than {MAX_PATH:,} characters"
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in path) or "\\" in path:
        return "it has a control character or a backslash"
    if not path.isascii() and any(0xD800 <= ord(letter) <= 0xDFFF for letter in path):
        return "it is not Unicode"
    if any(part in ("", ".", "..") for part in path[1:].split("/")):
        return "it has an empty segment, `.` or `..`"
    return ""
