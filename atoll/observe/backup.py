"""Backs up everything a running node stores to one tar file, and restores it into a folder.

Databases are copied with SQLite's backup API, so each copy is consistent even while the database is written to. The
first file of an archive is a manifest that lists all others with their hashes. A restore checks it before it writes
anything, and puts the folder in place only if every byte is right.

An archive to restore is untrusted. Its paths are checked, and its code caches are deleted: V8 does not verify bytecode,
so a node runs only bytecode that it made itself.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import IO

import apsw
import msgspec

from atoll import __version__
from atoll.db.folder import KEY_FILE, LEFTOVERS, WORK_PREFIX, DataFolder, restore_prefix
from atoll.db.migrate import migrations, user_version
from atoll.errors import StartError
from atoll.manifests.every import manifests
from atoll.observe.store import LOGS_FILE

FORMAT = 1
MANIFEST = "atoll-backup.json"
MAX_MANIFEST = 64 << 20
MAX_FILES = 1_000_000
CHUNK = 1 << 20
PAGES = 2_000  # of a database copied in one step; it can be written to between steps

# Files that are made again, or belong to a database that is copied as a whole
CACHED = tuple(name for manifest in manifests().values() for name in manifest.cached_files)
LEFT_OUT = ("lock", *CACHED, "*.snapshot", "*-wal", "*-shm", "*-journal", "*.spare", f"{KEY_FILE}.new", *LEFTOVERS)
# Files that never change: a link to them is a copy that takes no room
FIXED = tuple(f"{name}/" for manifest in manifests().values() for name in manifest.fixed_files)
SQLITE_MAGIC = b"SQLite format 3\0"
MAIN_FILE = "atoll.db"
OBJECTS_JOURNAL = "objects/journal"
OBJECTS_HISTORY = "objects/history.db"


class FileEntry(msgspec.Struct):
    name: str
    size: int
    sha256: str
    schema: int = 0  # for a database: the number of its last migration


class BackupManifest(msgspec.Struct):
    format: int
    atoll: str  # the version of Atoll that made it
    made_at: float
    files: list[FileEntry]


# Making one


def copy_folder(data: Path, into: Path, *, logs: bool = True) -> BackupManifest:
    """Copy everything a running node stores. Slow: call it in a thread."""
    entries: list[FileEntry] = []
    for source in _sources(data):
        name = source.relative_to(data).as_posix()
        is_wanted = name != KEY_FILE and (logs or name != LOGS_FILE) and not _left_out(name)
        if not is_wanted or source.is_symlink() or not source.is_file():
            continue
        copy = into / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            schema = _copy_named(name, data, into)
        except FileNotFoundError:
            continue  # deleted since it was listed
        entries.append(FileEntry(name, copy.stat().st_size, _hash(copy), schema))
    if (key := into / KEY_FILE).exists():
        entries.append(FileEntry(KEY_FILE, key.stat().st_size, _hash(key)))
    return BackupManifest(FORMAT, __version__, time.time(), entries)


def _sources(data: Path) -> Iterator[Path]:
    """All files, databases first. The others are looked for when those are copied: a database may refer to new ones."""
    yield from sorted(path for path in data.rglob("*.db") if path != data / OBJECTS_HISTORY)
    others = sorted(path for path in data.rglob("*") if path.suffix != ".db")
    yield from (path for path in others if path.parent != data / OBJECTS_JOURNAL)
    # Listed last: it has whatever was merged into the files of objects until they were copied
    yield from sorted((data / OBJECTS_JOURNAL).glob("*"))
    # Can undo all commits that the copies of files and journal have
    yield data / OBJECTS_HISTORY


def _copy_named(name: str, data: Path, into: Path) -> int:
    """Returns the number of the last migration of a database, 0 for any other file."""
    if name == MAIN_FILE:
        return _copy_with_key(data, into)
    if name.startswith(FIXED):
        os.link(data / name, into / name)
        return 0
    return _copy_file(data / name, into / name)


def _copy_with_key(data: Path, into: Path) -> int:
    """Copy the main database and the root key that decrypts its secrets, even if the key is rotated meanwhile."""
    while True:
        key = _root_key(data)
        schema = _copy_file(data / MAIN_FILE, into / MAIN_FILE)
        if _root_key(data) == key:
            break
        (into / MAIN_FILE).unlink()  # its secrets may be encrypted with either key: copy again
    if key is not None:
        (into / KEY_FILE).write_bytes(key)
    return schema


def _root_key(data: Path) -> bytes | None:
    try:
        return (data / KEY_FILE).read_bytes()
    except FileNotFoundError:
        return None


def _left_out(name: str) -> bool:
    return any(fnmatch.fnmatch(part, pattern) for part in name.split("/") for pattern in LEFT_OUT)


def _copy_file(source: Path, copy: Path) -> int:
    """Like `_copy_named`."""
    with source.open("rb") as file:
        is_database = file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    if not is_database:
        shutil.copyfile(source, copy)
        return 0
    original = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
    target = apsw.Connection(str(copy))
    try:
        original.set_busy_timeout(5_000)
        with target.backup("main", original, "main") as backup:
            while not backup.done:
                backup.step(PAGES)
        target.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file, without a log beside it
        return user_version(target)
    finally:
        target.close()
        original.close()


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tar_chunks(folder: Path, manifest: BackupManifest) -> Iterator[bytes]:
    """The archive, piece by piece."""
    text = msgspec.json.encode(manifest)
    yield _tar_head(MANIFEST, len(text), manifest.made_at) + text + _padding(len(text))
    for entry in manifest.files:
        yield _tar_head(entry.name, entry.size, manifest.made_at)
        with (folder / entry.name).open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
        yield _padding(entry.size)
    yield bytes(1024)  # the end of a tar file


def _tar_head(name: str, size: int, made_at: float) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, int(made_at), 0o600
    return info.tobuf(tarfile.PAX_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % 512)


def work_folder(data: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder for one backup. Folders that earlier backups left are removed first, as at a start (db/folder.py)."""
    for left in data.glob(f"{WORK_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)
    return tempfile.TemporaryDirectory(prefix=WORK_PREFIX, dir=data)


# Restoring a backup


def restore(archive: IO[bytes], data: Path) -> BackupManifest:
    """Restore an archive into the folder `data`. If it raises StartError, nothing has changed."""
    folder = DataFolder(data)  # locked during the restore
    folder.sweep()
    try:
        if any(child.name != "lock" for child in data.iterdir()):
            raise StartError(
                f"the folder {data} is not empty", "restore into a new one with --data, or move the old one away"
            )
        with tempfile.TemporaryDirectory(prefix=restore_prefix(data), dir=data.absolute().parent) as work:
            manifest = _unpack(archive, Path(work))
            _forget_code(Path(work) / MAIN_FILE)
            for child in sorted(Path(work).iterdir(), key=lambda child: child.name == MAIN_FILE):
                child.rename(data / child.name)  # the main database last: without it a folder counts as new
        return manifest
    finally:
        folder.close()


def _unpack(archive: IO[bytes], into: Path) -> BackupManifest:
    try:
        with tarfile.open(fileobj=archive, mode="r|*") as tar:
            manifest = _read_manifest(tar)
            wanted = {entry.name: entry for entry in manifest.files}
            while (member := tar.next()) is not None:
                entry = wanted.pop(member.name, None)
                if entry is None or not member.isreg() or member.size != entry.size:
                    raise damaged(f"`{member.name[:200]}` does not match the manifest")
                file = tar.extractfile(member)
                assert file is not None  # a regular file
                _write(file, into / entry.name, entry)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise damaged(str(error) or type(error).__name__) from None
    if wanted:
        raise damaged(f"{len(wanted)} of its files are missing")
    return manifest


def _read_manifest(tar: tarfile.TarFile) -> BackupManifest:
    first = tar.next()
    file = tar.extractfile(first) if first is not None and first.name == MANIFEST and first.isreg() else None
    if file is None:
        raise StartError("this is not a backup of Atoll", f"its first file is not {MANIFEST}")
    try:
        manifest = msgspec.json.decode(file.read(MAX_MANIFEST), type=BackupManifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(f"the manifest cannot be read: {error}") from None
    if manifest.format > FORMAT:
        raise newer(manifest)
    known = known_schemas()
    for entry in manifest.files:
        if entry.schema > known.get(entry.name, lambda: 2**31)():
            raise newer(manifest)
        parts = PurePosixPath(entry.name).parts
        if not parts or entry.name.startswith("/") or ".." in parts or "\0" in entry.name or entry.size < 0:
            raise damaged(f"it has a file named {entry.name[:200]!r}")
    if len(manifest.files) > MAX_FILES:
        raise damaged("it has too many files")
    return manifest


def known_schemas() -> dict[str, Callable[[], int]]:
    """The last migration that this Atoll knows, by database. Databases of bindings are checked when they are opened."""
    logs = resources.files("atoll.observe") / "migrations"
    return {MAIN_FILE: lambda: len(migrations()), LOGS_FILE: lambda: len(migrations(logs))}


def _write(file: IO[bytes], path: Path, entry: FileEntry) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != entry.sha256:
        raise damaged(f"`{entry.name}` does not match its hash in the manifest")


def _forget_code(database: Path) -> None:
    if not database.exists():
        raise damaged(f"it has no {MAIN_FILE}")
    connection = apsw.Connection(str(database))
    try:
        connection.execute("DELETE FROM code_caches")
    except apsw.Error as error:
        raise damaged(f"{MAIN_FILE}: {error}") from None
    finally:
        connection.close()


def damaged(why: str) -> StartError:
    return StartError(f"the backup is damaged: {why}", "nothing was restored; use another backup")


def newer(manifest: BackupManifest) -> StartError:
    return StartError(
        f"the backup was made by a newer Atoll ({manifest.atoll[:40]}; this is {__version__})",
        "nothing was restored; install that Atoll, or a newer one, and restore with it",
    )
