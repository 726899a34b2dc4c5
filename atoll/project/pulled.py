"""Writes the bundle of a version that a node sends as a tar stream. The node is not trusted.

Everything is written to a new folder beside the target and checked against the hashes of its manifest. Only then it
gets the target's name. A name in the archive is used only if the manifest lists it as a plain relative path, so nothing
is written outside the folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import IO, Any

from atoll.project.bundle import read_bundle
from atoll.project.carried import FILES, LIST, MAX_LIST, CarriedFile, carried_by, named_files
from atoll.project.model import ProjectError
from atoll.project.out import FORMAT, MANIFEST, MODULES

MAX_BYTES = 256 << 20  # of all files
MAX_MANIFEST = 16 << 20
CHUNK = 256 << 10


def write_pulled(stream: IO[bytes], folder: Path) -> dict[str, Any]:
    """Write the bundle to a new or empty folder; returns its manifest. If it raises ProjectError, nothing is left."""
    refuse_used(folder)
    parent = folder.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{folder.name[:50]}-", dir=parent))
    except OSError as error:
        raise ProjectError(f"{parent} cannot be written: {error.strerror}", "name another folder with --out") from None
    try:
        manifest = _extract(stream, work)
        read_bundle(work)  # checks every hash
        os.chmod(work, 0o755)
        if folder.is_dir():
            folder.rmdir()  # it is empty
        work.rename(folder)
    except (tarfile.TarError, EOFError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ProjectError(f"the node sent no complete bundle: {error}", "try again") from None
    except OSError as error:
        raise ProjectError(f"the bundle cannot be written: {error}", "name another folder with --out") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return manifest


class BoundedStream:
    """Reads from a stream that may have no end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._left = MAX_BYTES + 2 * MAX_MANIFEST + MAX_LIST

    def expect(self, files: Iterable[CarriedFile]) -> None:
        """Allow the files that the list of the bundle names."""
        self._left += sum(file.size + 2 * tarfile.BLOCKSIZE for file in files)

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ValueError("it is too large")
        return data


def refuse_used(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise ProjectError(f"{folder} exists and is not an empty folder", "name another folder with --out")


def _extract(stream: IO[bytes], work: Path) -> dict[str, Any]:
    bounded = BoundedStream(stream)
    with tarfile.open(fileobj=bounded, mode="r|") as tar:  # type: ignore[call-overload]
        first = tar.next()
        if first is None or first.name != MANIFEST or not first.isreg() or first.size > MAX_MANIFEST:
            raise ValueError(f"its first file is not {MANIFEST}")
        raw = _content(tar, first).read(first.size)
        manifest: dict[str, Any] = json.loads(raw)
        if manifest["format"] != FORMAT:
            raise ValueError("it has another format")
        (work / MANIFEST).write_bytes(raw)
        wanted = _names(manifest)
        carried: dict[str, CarriedFile] = {}
        left = MAX_BYTES
        while (info := tar.next()) is not None:
            file = carried.get(info.name)
            left -= info.size if file is None else 0
            if info.name not in wanted or not info.isreg() or left < 0 or (file and file.size != info.size):
                raise ValueError(f"unexpected file {info.name[:200]!r}")
            wanted.discard(info.name)
            path = work.joinpath(*PurePosixPath(info.name).parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            if _copy(tar, info, path) != (file.hash if file else "") and file:
                raise ValueError(f"the file {info.name} has another hash")
            if info.name == LIST:
                carried = {f"{FILES}/{each.hash}": each for each in carried_by(work, named_files(manifest)) or ()}
                bounded.expect(carried.values())
                wanted |= carried.keys()
    if wanted:
        raise ValueError(f"{len(wanted)} of its files are missing")
    return manifest


def _copy(tar: tarfile.TarFile, info: tarfile.TarInfo, path: Path) -> str:
    """Write a file of the archive, and return its SHA-256."""
    source, digest = _content(tar, info), hashlib.sha256()
    with path.open("xb") as out:
        while piece := source.read(CHUNK):
            digest.update(piece)
            out.write(piece)
    return digest.hexdigest()


def _content(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    found = tar.extractfile(info)
    assert found is not None  # a regular file
    return found


def _names(manifest: dict[str, Any]) -> set[str]:
    """The names of all files that belong to the bundle. ValueError for one that is not a plain relative path."""
    names = set()
    for entry in manifest["modules"]:
        path = str(entry["path"])
        if any(part in ("", ".", "..") for part in path.split("/")) or "\\" in path or "\0" in path or ":" in path:
            raise ValueError(f"it names {path[:200]!r}, which is not a plain relative path")
        names.add(f"{MODULES}/{path}")
        if "source_map_sha256" in entry:
            names.add(f"{MODULES}/{path}.map")
    if named_files(manifest) is not None:
        names.add(LIST)
    return names
