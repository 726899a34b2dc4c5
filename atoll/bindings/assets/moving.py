"""The contents of static assets for `atoll migrate`. What is known about them moves with the workers."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atoll.asset_files.places import COPIES, INCOMING, FilePlaces
from atoll.asset_files.shared import PIECE, put_content
from atoll.errors import StartError
from atoll.manifests.moved import MovedPart

FOUND = "SELECT id, tenant, hash, coding, size, digest FROM asset_contents WHERE id > $1 ORDER BY id LIMIT 500"
PIECES = "SELECT body FROM asset_pieces WHERE content = $1 AND part = $2"


class MovedAssets:
    name = "files of static assets"

    async def is_empty(self, connection: Any) -> bool:
        return not await connection.fetchval("SELECT EXISTS (SELECT FROM asset_contents)")

    async def into_postgres(self, data: Path, connection: Any) -> int:
        places, count = FilePlaces(data), 0
        files = _files(places)
        while (found := await asyncio.to_thread(next, files, None)) is not None:
            tenant, digest, coding = found
            await put_content(connection, places, tenant, digest, coding)
            count += 1
        if await self._check(connection, None) != count:
            raise StartError("not all files of assets are in PostgreSQL, so nothing was moved", "start it again")
        return count

    async def into_folder(self, connection: Any, data: Path) -> int:
        return await self._check(connection, FilePlaces(data))

    async def _check(self, connection: Any, places: FilePlaces | None) -> int:
        """Read every content and compare its hash; write it, if there are places. Returns how many there are."""
        after = count = 0
        while rows := await connection.fetch(FOUND, after):
            for row in rows:
                name = row["hash"].hex()
                place = os.devnull if places is None else places.of(row["tenant"], name) + row["coding"]
                digest, size = hashlib.sha256(), 0
                await asyncio.to_thread(_make, place)
                for part in range(-(-row["size"] // PIECE)):
                    body = await connection.fetchval(PIECES, row["id"], part) or b""
                    digest.update(body)
                    size += len(body)
                    await asyncio.to_thread(_append, place, body)
                is_whole = (size, digest.digest()) == (row["size"], row["digest"])
                if not is_whole or (not row["coding"] and digest.digest() != row["hash"]):
                    raise StartError(f"the file of assets {name} is damaged, so nothing was moved", "deploy it again")
                count += 1
            after = rows[-1]["id"]
        return count


def _make(place: str) -> None:
    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    _append(place, b"")


def _append(place: str, body: bytes) -> None:
    with open(place, "ab") as file:
        file.write(body)


def _files(places: FilePlaces) -> Iterator[tuple[str, bytes, str]]:
    """Tenant, hash and coding of every file."""
    if not places.root.exists():
        return
    for tenant in sorted(each for each in places.root.iterdir() if each.is_dir() and each.name != INCOMING):
        for path in sorted(path for path in tenant.rglob("*") if path.is_file()):
            coding = path.name[64:]
            assert coding in COPIES
            yield tenant.name, bytes.fromhex(path.name[:64]), coding


PART = MovedPart(contents=(MovedAssets(),))
