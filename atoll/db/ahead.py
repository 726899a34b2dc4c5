"""Whether a data folder was used by a newer Atoll, found out without changing anything in it."""

from __future__ import annotations

from pathlib import Path

import apsw

from atoll.db.migrate import migrations, user_version
from atoll.errors import StartError

MAIN = "atoll.db"
HEADER, MAGIC, VERSION_AT = 100, b"SQLite format 3\0", 60  # of a database file; `user_version` is at VERSION_AT


def refuse_newer_file(data: Path) -> None:
    """The same by the header of the file alone, without SQLite, which may make files beside it."""
    try:
        with (data / MAIN).open("rb") as file:
            head = file.read(HEADER)
    except OSError:
        return
    if len(head) == HEADER and head.startswith(MAGIC):
        _check(data / MAIN, int.from_bytes(head[VERSION_AT : VERSION_AT + 4], "big"))


def refuse_newer(data: Path) -> None:
    """StartError if the main database has tables of a newer Atoll. Opens it for reading only."""
    path = data / MAIN
    if not path.exists():
        return
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error:
        return  # the start says what is wrong with it
    try:
        have = user_version(connection)
    except apsw.Error:
        return
    finally:
        connection.close()
    _check(path, have)


def _check(path: Path, have: int) -> None:
    known = len(migrations())
    if have > known:
        raise StartError(
            f"{path} was made by a newer Atoll (its tables are at {have}, this Atoll knows {known})",
            "run the newer Atoll, or give this one another folder with --data",
        )
