"""Static assets of stored versions: their rules in the row of the version, their files from the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import apsw
import msgspec

from atoll.api.refusals import ApiCode, Refused
from atoll.asset_files.places import FilePlaces
from atoll.asset_files.rows import FILES, FileRow, find_manifest
from atoll.assets.manifest import lines_of
from atoll.assets.rules import NO_WORKER, AssetRules
from atoll.assets.table import AssetFile, AssetTable, file_of, navigates_to_assets
from atoll.db.sqlite import database_folder, each_row
from atoll.pauses import with_pauses
from atoll.workers import Version

SEND_AGAIN = "deploy the project again: `atoll deploy` sends missing files first"


def load_files(connection: apsw.Connection, tenant: str, rules: AssetRules) -> dict[str, AssetFile]:
    """The files of a manifest, by path."""
    manifest = find_manifest(connection, tenant, rules.manifest)
    if manifest is None:
        raise Refused(ApiCode.ASSETS_MISSING, f"there is no manifest {rules.manifest}", SEND_AGAIN)
    known = {row.hash.hex(): row for row in each_row(connection, FileRow, FILES, manifest.number)}
    places = FilePlaces(database_folder(connection))
    files: dict[str, AssetFile] = {}
    for digest, size, path in with_pauses(lines_of(manifest.text)):
        row = known[digest]
        if not row.stored or row.size != size:
            raise Refused(ApiCode.ASSETS_MISSING, f"the file {path[:200]} was not uploaded", SEND_AGAIN)
        files[path] = file_of(path, digest, size, places.of(tenant, digest), row.gzip, row.br)
    return files


class ListedFiles(NamedTuple):
    """The files of a version for a download: the text of their manifest, and where each content is."""

    text: bytes
    contents: list[tuple[str, int, str]]  # hash, size, place


def list_files(connection: apsw.Connection, tenant: str, manifest: str) -> ListedFiles:
    """Raises Refused if the manifest was collected."""
    found = find_manifest(connection, tenant, manifest)
    if found is None:
        raise Refused(ApiCode.ASSETS_MISSING, f"there is no manifest {manifest}", SEND_AGAIN)
    places = FilePlaces(database_folder(connection))
    sizes = {digest: size for digest, size, _ in with_pauses(lines_of(found.text))}
    return ListedFiles(found.text, [(digest, size, places.of(tenant, digest)) for digest, size in sizes.items()])


def table_of(version: Version, rules: AssetRules, files: Mapping[str, AssetFile]) -> AssetTable:
    """The assets of a version, prepared for requests."""
    navigates = navigates_to_assets(version.compatibility_date, version.compatibility_flags, rules)
    return AssetTable(rules, files, has_worker=version.main != NO_WORKER, navigates=navigates)


def late_assets(version: Version, stored: str) -> AssetTable:
    """The assets of a version without their files, which are read when a request comes."""
    table = table_of(version, msgspec.json.decode(stored, type=AssetRules), {})
    table.is_here = False
    return table


def assets_of(connection: apsw.Connection, version: Version, stored: str) -> AssetTable:
    rules = msgspec.json.decode(stored, type=AssetRules)
    return table_of(version, rules, load_files(connection, version.tenant, rules))


def stored_rules(connection: apsw.Connection, version: Version) -> str:
    """The rules as they are stored. Raises Refused if the manifest was collected since the version was checked."""
    if version.assets is None:
        return ""
    rules = version.assets.rules
    if find_manifest(connection, version.tenant, rules.manifest) is None:
        raise Refused(ApiCode.ASSETS_MISSING, f"there is no manifest {rules.manifest}", SEND_AGAIN)
    return msgspec.json.encode(rules).decode()
