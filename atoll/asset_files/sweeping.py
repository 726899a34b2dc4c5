"""Several nodes and the contents of assets that nothing needs: in PostgreSQL, and in the folder of this node.

The folder also mends PostgreSQL: a stored file that is here and not there is put there again, as after a restore of an
older backup, or when a node that was the only one becomes one of several.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

import apsw

from atoll.asset_files.places import INCOMING, FilePlaces
from atoll.asset_files.rows import NewFile
from atoll.asset_files.shared import OldContent, SharedContents
from atoll.db.sqlite import Database, each_row, rows

log = logging.getLogger("atoll.assets")

PAGE: Final = 500
NAME: Final = re.compile(r"[0-9a-f]{64}(\.gz|\.br)?")
STORED: Final = "SELECT hash, size, gzip, br FROM asset_files WHERE tenant = ? AND stored = 1"
IS_STORED: Final = "SELECT 1 FROM asset_files WHERE tenant = ? AND hash = ? AND stored = 1"


class CachedFile(NamedTuple):
    hash: bytes
    place: str
    age: float  # seconds


async def delete_unneeded(shared: SharedContents, database: Database, seconds: float) -> int:
    """Delete contents in PostgreSQL that no row names. Returns how many."""
    total = 0
    async for page in shared.old(seconds):
        await database.follow()

        unneeded = await database.search(partial(_unneeded, page=page))
        total += await shared.delete(unneeded)
    if total:
        log.info("%d contents of assets that no version needs were removed", total)
    return total


def _unneeded(connection: apsw.Connection, page: Sequence[OldContent]) -> list[OldContent]:
    return [each for each in page if not rows(connection, int, IS_STORED, each.tenant, each.hash)]


async def tidy_cache(
    shared: SharedContents, database: Database, places: FilePlaces, seconds: float, names: asyncio.Lock
) -> None:
    """Remove files of this node that no row names, and put those into PostgreSQL that it lacks."""
    for tenant in await asyncio.to_thread(_tenants, places):
        async with names:
            found = await asyncio.to_thread(_files, places, tenant)
            stored = await database.search(partial(_stored, tenant=tenant))
            needless = [each.place for each in found if each.hash not in stored and each.age >= seconds]
            await asyncio.to_thread(unlink_all, needless)
        whole = sorted({each.hash for each in found if each.hash in stored and len(os.path.basename(each.place)) == 64})
        for start in range(0, len(whole), PAGE):
            lost = await shared.missing(tenant, whole[start : start + PAGE])
            if lost:
                await shared.put(tenant, [_on_disk(places, tenant, stored[each]) for each in sorted(lost)])
                log.warning(
                    "%d files of assets of %s were missing in PostgreSQL; this node had them", len(lost), tenant
                )


def _on_disk(places: FilePlaces, tenant: str, file: NewFile) -> NewFile:
    """Without the copies that are not here."""
    place = places.of(tenant, file.hash.hex())
    gzip, br = (size if os.path.exists(place + end) else 0 for size, end in ((file.gzip, ".gz"), (file.br, ".br")))
    return file._replace(gzip=gzip, br=br)


def _stored(connection: apsw.Connection, tenant: str) -> dict[bytes, NewFile]:
    return {file.hash: file for file in each_row(connection, NewFile, STORED, tenant)}


def _tenants(places: FilePlaces) -> list[str]:
    if not places.root.exists():
        return []
    return sorted(each.name for each in places.root.iterdir() if each.is_dir() and each.name != INCOMING)


def _files(places: FilePlaces, tenant: str) -> list[CachedFile]:
    found, now = [], time.time()
    for folder, _, names in os.walk(places.tenant(tenant)):
        for name in names:
            if not NAME.fullmatch(name):
                continue  # not ours
            place = f"{folder}/{name}"
            found.append(CachedFile(bytes.fromhex(name[:64]), place, now - os.stat(place).st_mtime))
    return found


def unlink_all(files: Sequence[str]) -> None:
    for place in files:
        with suppress(FileNotFoundError):
            os.unlink(place)
