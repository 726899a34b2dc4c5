"""What `atoll doctor --data FOLDER` finds: databases and Durable Objects that are damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from atoll.cli.doctor_project import Check

RESTORE = "restore a backup (docs/guides/backup.md)"


def damage_check(about: str, id: str, words: str, worker: str = "", class_name: str = "") -> Check:
    if not id:
        return Check(
            about, "error", f"no Durable Object can be used: {words}", f"{RESTORE}, or move this file away to lose it"
        )
    name = f"{worker} {class_name} {id}" if worker else id
    delete = f", or delete the object: atoll objects delete {worker} {class_name} {id}" if worker else ""
    return Check(about, "error", f"the Durable Object {name} is refused: {words}", f"{RESTORE}{delete}")


def data_checks(data: Path) -> Iterator[Check]:
    """Reads everything and changes nothing."""
    import apsw

    from atoll.objects.replay import replay

    databases = sorted(path for path in data.rglob("*.db") if path.is_file())
    if not databases:
        yield Check("data", "error", f"{data} has no database", "name the folder that --data of atoll serve names")
        return
    for path in databases:
        try:
            connection = apsw.Connection(f"file:{path}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
            try:
                found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
            finally:
                connection.close()
        except apsw.Error as error:
            found = [str(error)]
        if found == ["ok"]:
            yield Check("data", "ok", f"{path.relative_to(data)} is whole")
        else:
            yield Check("data", "error", f"{path} is damaged: {'; '.join(found)[:300]}", RESTORE)
    journal = data / "objects" / "journal"
    if journal.is_dir():
        replayed = replay(journal)
        if replayed.lost:
            yield damage_check("data", "", replayed.lost)
        hurt = {found.record.key.id: found.record for found in replayed.found if found.is_damaged}
        for id, record in hurt.items():
            yield damage_check("data", id, f"commit {record.sequence} of it is damaged in the journal")
        yield Check("data", "ok", f"the journal of objects has {len(replayed.found)} records")
    yield from _index_checks(data)


def _index_checks(data: Path) -> Iterator[Check]:
    """Objects that were found to be damaged, and files that are missing or have another size."""
    import apsw

    from atoll.objects.files import ObjectFiles
    from atoll.objects.store import PAGE, ObjectKey

    index, folder = data / "objects" / "index.db", data / "objects"
    if not index.exists():
        return
    files = ObjectFiles(folder / "files", folder / "journal")
    is_merged = not any((folder / "journal").glob("*.segment"))
    count = 0
    try:
        connection = apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READONLY)
        for namespace, id, pages, damage in connection.execute("SELECT namespace, id, pages, damage FROM objects"):
            count += 1
            path = files.path(ObjectKey(str(namespace), str(id)))
            if damage is not None:
                yield damage_check("data", str(id), str(damage))
            elif pages and not path.exists():
                yield damage_check("data", str(id), f"its file {path} is missing")
            elif is_merged and pages and path.stat().st_size != int(pages) * PAGE:  # else a merge may be unfinished
                yield damage_check(
                    "data", str(id), f"its file {path} has {path.stat().st_size} bytes, not {int(pages) * PAGE}"
                )
        connection.close()
    except apsw.Error:
        return  # said above
    yield Check("data", "ok", f"{count} objects are stored")
