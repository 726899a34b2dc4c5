"""Manifests: which files a version has, each by its path, hash and size.

A manifest arrives as JSON and is checked in a job process. It is kept as text with one line per file, sorted by path,
so that a thread reads it in small steps:

    <sha256 in hex> <size> <path>

Its id is the SHA-256 of that text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from atoll.assets.paths import fault_of

HASH: Final = re.compile(r"[0-9a-f]{64}")
MAX_SHOWN: Final = 80
_HEAD: Final = "ok\n"


class SentFile(msgspec.Struct, forbid_unknown_fields=True):
    hash: str
    size: int


class SentManifest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of POST /api/assets/manifests: the files by their paths, which begin with `/`."""

    files: dict[str, SentFile]


def check_job(data: Any, args: dict[str, Any]) -> bytes:
    """In a job process: `ok` and the text of a manifest, or why it is refused."""
    try:
        sent = msgspec.json.decode(bytes(data), type=SentManifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"the body does not fit: {error}".encode("utf-8", "replace")
    why = _fault(sent, int(args["max_files"]), int(args["max_bytes"]))
    return why.encode("utf-8", "replace") if why else (_HEAD + text_of(sent)).encode()


def _fault(sent: SentManifest, max_files: int, max_bytes: int) -> str:
    if not sent.files:
        return "the manifest has no files"
    if len(sent.files) > max_files:
        return f"the manifest has {len(sent.files):,} files, more than the limit of {max_files:,}"
    sizes: dict[str, int] = {}
    for path, file in sent.files.items():
        shown = repr(path[:MAX_SHOWN])
        if why := fault_of(path):
            return f"a file cannot be named {shown}: {why}"
        if not HASH.fullmatch(file.hash):
            return f"the hash of {shown} is not a SHA-256 in lower-case hex"
        if not 0 <= file.size <= max_bytes:
            return f"{shown} has {file.size:,} bytes, more than the limit of {max_bytes:,}"
        if sizes.setdefault(file.hash, file.size) != file.size:
            return f"{shown} has the hash of another file with another size"
    return ""


def text_of(sent: SentManifest) -> str:
    return "".join([f"{file.hash} {file.size} {path}\n" for path, file in sorted(sent.files.items())])


def checked_text(result: bytes) -> tuple[bytes, str]:
    """The text of a manifest, or why it was refused."""
    if result.startswith(_HEAD.encode()):
        return result[len(_HEAD) :], ""
    return b"", result.decode("utf-8", "replace")


def manifest_id(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def lines_of(text: bytes) -> Iterator[tuple[str, int, str]]:
    """Hash, size and path of each file."""
    for line in text.decode().split("\n"):
        if line:
            digest, size, path = line.split(" ", 2)
            yield digest, int(size), path
