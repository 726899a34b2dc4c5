"""Upload sessions of wrangler: which files a deploy has, and which have arrived.

wrangler names a file by the first 32 digits of BLAKE3 over its content in base64 and its extension; Atoll names it by
SHA-256. So a session remembers which SHA-256 belongs to which of these names, until it ends in a manifest. It is in
memory: after a restart of the node, wrangler has to deploy again.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from atoll.assets.paths import fault_of
from atoll.assets.table import AssetFile
from atoll.pauses import with_pauses

HASH: Final = re.compile(r"[0-9a-f]{32}")
SECONDS: Final = 3600  # that a session lasts
MAX_SESSIONS: Final = 4  # of one tenant
MAX_FILES: Final = 400_000  # of all sessions: each takes some 300 bytes
PIECE: Final = 3 * (64 << 10)  # of a file: base64 of a multiple of three has no padding
MAX_KNOWN: Final = 50_000
OK: Final = b"+"


class SentAsset(Struct):
    hash: str
    size: int


class SentAssets(Struct):
    """The body that begins a session."""

    manifest: dict[str, SentAsset]


class WantedAsset(Struct, gc=False):
    path: str
    hash: str
    size: int


def check_job(data: Any, args: dict[str, Any]) -> bytes:
    """In a job process: the files of a session, checked and packed, or why they are refused."""
    try:
        sent = msgspec.json.decode(bytes(data), type=SentAssets)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"-the body does not fit: {error}".encode("utf-8", "replace")
    if len(sent.manifest) > args["max_files"]:
        return f"-the manifest has {len(sent.manifest):,} files, more than the limit of {args['max_files']:,}".encode()
    found: list[tuple[str, str, int]] = []
    for name, file in sent.manifest.items():
        path, shown = unquote(name), repr(name[:80])
        why = fault_of(path) if path.startswith("/") else "it does not begin with /"
        if not why and not HASH.fullmatch(file.hash):
            why = "its hash is not 32 hexadecimal digits"
        if not why and not 0 <= file.size <= args["max_bytes"]:
            why = f"it has {file.size:,} bytes, and the limit is {args['max_bytes']:,}"
        if why:
            return f"-the file {shown} cannot be uploaded: {why}".encode("utf-8", "replace")
        found.append((path, file.hash, file.size))
    return OK + msgspec.msgpack.encode(found)


class UploadSession:
    """The files of one deploy."""

    def __init__(self, tenant: str, script: str, files: list[WantedAsset]) -> None:
        self.tenant = tenant
        self.script = script
        self.files = files
        self.ends_at = time.time() + SECONDS
        self.wanted = {each.hash: each for each in files}  # one of the files with this content
        self.arrived: dict[str, str] = {}  # hash -> SHA-256

    @property
    def is_complete(self) -> bool:
        return len(self.arrived) == len(self.wanted)

    def missing(self) -> list[WantedAsset]:
        return [each for digest, each in self.wanted.items() if digest not in self.arrived]

    def manifest(self) -> bytes:
        """In a thread: the text of the manifest (assets/manifest.py)."""
        lines = sorted((each.path, f"{self.arrived[each.hash]} {each.size} {each.path}\n") for each in self.files)
        return "".join([line for _, line in lines]).encode()


class UploadSessions:
    def __init__(self) -> None:
        self._sessions: OrderedDict[str, UploadSession] = OrderedDict()
        self._known: dict[tuple[str, str], str] = {}  # SHA-256 and extension -> hash

    def open(self, session: UploadSession) -> str:
        """Remember a session; the oldest ones make room for it. Returns its id."""
        mine = [key for key, each in self._sessions.items() if each.tenant == session.tenant]
        for key in mine[: max(0, len(mine) - MAX_SESSIONS + 1)]:
            del self._sessions[key]
        name = secrets.token_hex(16)
        self._sessions[name] = session
        while len(self._sessions) > 1 and sum(len(each.files) for each in self._sessions.values()) > MAX_FILES:
            self._sessions.popitem(last=False)
        return name

    def find(self, name: str) -> UploadSession | None:
        session = self._sessions.get(name)
        return session if session is not None and session.ends_at > time.time() else None

    def close(self, name: str) -> None:
        self._sessions.pop(name, None)

    def recognise(self, session: UploadSession, present: Mapping[str, AssetFile]) -> None:
        """In a thread: find the files that the last version has too, under the same path and with the same content."""
        for each in with_pauses(iter(session.files)):
            file = present.get(each.path)
            if file is None or file.size != each.size or each.hash in session.arrived:
                continue
            key = file.hash, extension(each.path)
            found = self._known.get(key)
            if found is None:
                try:
                    with open(file.place, "rb") as content:
                        found = digest_of(iter(partial(content.read, PIECE), b""), each.path)[0]
                except OSError:
                    continue
                if len(self._known) >= MAX_KNOWN:
                    self._known.clear()
                self._known[key] = found
            if found == each.hash:
                session.arrived[each.hash] = file.hash


def extension(path: str) -> str:
    return posixpath.splitext(path)[1][1:]


def pieces(content: bytes) -> Iterator[bytes]:
    return (content[first : first + PIECE] for first in range(0, len(content), PIECE))


def digest_of(chunks: Iterator[bytes], path: str) -> tuple[str, str]:
    """In a thread: wrangler's hash of a file, and its SHA-256. All pieces but the last have PIECE bytes."""
    from blake3 import blake3  # only uploads of wrangler need it

    theirs, ours = blake3(), hashlib.sha256()
    for piece in chunks:
        theirs.update(base64.b64encode(piece))
        ours.update(piece)
    theirs.update(extension(path).encode())
    return theirs.hexdigest()[:32], ours.hexdigest()
