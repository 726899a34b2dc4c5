"""A backup is complete, and consistent while the data changes. A bad backup changes nothing."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from atoll import __version__
from atoll.db.folder import KEY_FILE, DataFolder
from atoll.db.migrate import migrate
from atoll.errors import StartError
from atoll.observe import backup
from atoll.observe.backup import MANIFEST, copy_folder, restore, tar_chunks, work_folder


def database(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    return connection


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder as a node leaves it."""
    folder = tmp_path / "data"
    (folder / "kv").mkdir(parents=True)
    connection = database(folder / "atoll.db")
    migrate(connection, folder / "atoll.db")
    connection.close()
    connection = database(folder / "kv" / "kv.db")
    connection.execute("CREATE TABLE pairs (key, value); INSERT INTO pairs VALUES ('a', 1)")
    connection.close()
    database(folder / "logs.db").execute("CREATE TABLE lines (text)")
    (folder / "secret.key").write_bytes(bytes(range(32)))
    (folder / "lock").write_text("1")
    (folder / "engine-1.snapshot").write_bytes(b"x")
    (folder / "link").symlink_to("/etc/passwd")
    return folder


def archive_of(data: Path, **options: bool) -> bytes:
    with work_folder(data) as work:
        manifest = copy_folder(data, Path(work), **options)
        return b"".join(tar_chunks(Path(work), manifest))


def names(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return tar.getnames()


def test_a_backup_has_stored_data_and_no_rebuildable_files(data: Path) -> None:
    archive = archive_of(data)
    assert names(archive) == [MANIFEST, "atoll.db", "kv/kv.db", "logs.db", "secret.key"]
    assert names(archive_of(data, logs=False)) == [MANIFEST, "atoll.db", "kv/kv.db", "secret.key"]
    assert not list(data.glob("backup-*")), "no work folder is left"


def test_a_restored_folder_has_the_same_data(data: Path, tmp_path: Path) -> None:
    manifest = restore(io.BytesIO(archive_of(data)), tmp_path / "new")
    assert manifest.atoll == __version__
    assert (tmp_path / "new/secret.key").read_bytes() == bytes(range(32))
    assert (tmp_path / "new/secret.key").stat().st_mode & 0o777 == 0o600
    connection = apsw.Connection(str(tmp_path / "new/kv/kv.db"))
    assert connection.execute("SELECT * FROM pairs").fetchall() == [("a", 1)]
    connection.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "new"], "no work folder is left"


def test_a_database_is_copied_as_one_snapshot(data: Path, tmp_path: Path) -> None:
    writer = database(data / "kv" / "kv.db")
    writer.execute("DELETE FROM pairs; INSERT INTO pairs VALUES ('a', 0), ('b', 0)")
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with writer:
                writer.execute("UPDATE pairs SET value = value + 1")
                writer.execute("INSERT INTO pairs VALUES ('filler', zeroblob(10000))")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(3):
            restore(io.BytesIO(archive_of(data)), tmp_path / f"new{number}")
            copy = apsw.Connection(str(tmp_path / f"new{number}/kv/kv.db"))
            assert copy.pragma("integrity_check") == "ok"
            a, b = copy.execute("SELECT value FROM pairs WHERE key IN ('a', 'b')").fetchall()
            assert a == b, "the copy has half a transaction"
            copy.close()
    finally:
        stop.set()
        thread.join()
        writer.close()


def test_a_backup_during_a_key_rotation_can_be_opened(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is copied first and the key much later: the rotation happens in between."""
    copy_file, rotations = backup._copy_file, iter([b"2", b"3"])
    (data / KEY_FILE).write_bytes(b"1")

    def rotated_after(source: Path, copy: Path) -> int:
        schema = copy_file(source, copy)
        if source.name == "atoll.db" and (key := next(rotations, None)):
            connection = database(source)
            connection.execute("INSERT INTO tokens VALUES (?, ?, '', NULL, '[]', 0, NULL, NULL)", (key.decode(), key))
            connection.close()
            (data / KEY_FILE).write_bytes(key)
        return schema

    monkeypatch.setattr(backup, "_copy_file", rotated_after)
    restore(io.BytesIO(archive_of(data)), tmp_path / "new")
    connection = database(tmp_path / "new/atoll.db")
    assert [row[0] for row in connection.execute("SELECT id FROM tokens")] == ["2", "3"]
    connection.close()
    assert (tmp_path / "new" / KEY_FILE).read_bytes() == b"3"


def test_code_caches_are_not_restored_from_a_backup(data: Path, tmp_path: Path) -> None:
    connection = database(data / "atoll.db")
    connection.execute("PRAGMA foreign_keys = OFF; INSERT INTO code_caches VALUES ('v', 'worker.js', 'v8', x'00')")
    connection.close()
    restore(io.BytesIO(archive_of(data)), tmp_path / "new")
    restored = apsw.Connection(str(tmp_path / "new/atoll.db"))
    assert restored.execute("SELECT count(*) FROM code_caches").fetchall() == [(0,)]
    restored.close()


def changed(archive: bytes, change: Callable[[dict[str, Any]], None], extra: str = "") -> bytes:
    """The archive with another manifest, and optionally an additional file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar, tarfile.open(fileobj=out, mode="w") as new:
        for member in tar:
            file = tar.extractfile(member)
            assert file is not None
            content = file.read()
            if member.name == MANIFEST:
                manifest = json.loads(content)
                change(manifest)
                content = json.dumps(manifest).encode()
                member.size = len(content)
            new.addfile(member, io.BytesIO(content))
        if extra:
            new.addfile(tarfile.TarInfo(extra))
    return out.getvalue()


def set_schema(manifest: dict[str, Any]) -> None:
    manifest["files"][0]["schema"] = 999


def set_format(manifest: dict[str, Any]) -> None:
    manifest["format"] = 2


@pytest.mark.parametrize("change", [set_schema, set_format])
def test_a_backup_of_a_newer_atoll_is_refused(
    data: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    with pytest.raises(StartError, match="made by a newer Atoll") as error:
        restore(io.BytesIO(changed(archive_of(data), change)), tmp_path / "new")
    assert "install that Atoll" in error.value.hint
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["lock"], "nothing was restored"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda archive: b"no tar at all" * 100, "damaged"),
        (lambda archive: b"", "damaged|not a backup"),
        (lambda archive: archive[: len(archive) // 2], "damaged"),
        (lambda archive: archive.replace(bytes(range(32)), bytes(32)), "secret.key` does not match its hash"),
        (lambda archive: changed(archive, lambda m: m["files"].pop()), "does not match the manifest"),
        (lambda archive: changed(archive, lambda m: m["files"][0].update(name="../x")), "a file named '../x'"),
        (lambda archive: changed(archive, lambda m: m["files"][0].update(name="/x")), "a file named '/x'"),
        (lambda archive: changed(archive, lambda m: m["files"].append(dict(m["files"][0], name="y"))), "missing"),
        (lambda archive: changed(archive, lambda m: m.pop("files")), "manifest cannot be read"),
        (lambda archive: changed(archive, lambda m: None, extra="../../evil"), "does not match the manifest"),
    ],
)
def test_a_damaged_backup_changes_nothing(
    data: Path, tmp_path: Path, spoil: Callable[[bytes], bytes], words: str
) -> None:
    with pytest.raises(StartError, match=words):
        restore(io.BytesIO(spoil(archive_of(data))), tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["lock"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "new"]


def test_a_folder_that_is_not_empty_or_in_use_is_not_touched(data: Path, tmp_path: Path) -> None:
    archive = archive_of(data)
    with pytest.raises(StartError, match="is not empty"):
        restore(io.BytesIO(archive), data)
    used = DataFolder(tmp_path / "used")
    with pytest.raises(StartError, match="another Atoll"):
        restore(io.BytesIO(archive), tmp_path / "used")
    used.close()


def test_leftovers_of_a_crashed_backup_are_removed_by_the_next(data: Path) -> None:
    (data / "backup-abc").mkdir()
    (data / "backup-abc" / "atoll.db").write_bytes(b"half")
    assert "backup-abc/atoll.db" not in names(archive_of(data))
    assert not (data / "backup-abc").exists()
