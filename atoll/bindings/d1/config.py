"""`d1_databases` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import REMOTE, ConfigField, FindingLevel, Reading, Subfield
from atoll.workers import worker_name


class ConfigDatabase(Struct):
    """An entry of `d1_databases`. `atoll d1 migrations` reads the last two fields."""

    binding: str
    database_name: str = ""
    database_id: str = ""
    migrations_dir: str = "migrations"
    migrations_table: str = "d1_migrations"


def read(databases: list[ConfigDatabase], reading: Reading) -> None:
    for each in databases:
        reading.bind("d1", each.binding, database=name_of(each, reading.project))


def name_of(database: ConfigDatabase, project: str) -> str:
    """Names are what a node finds databases by: the ids of Cloudflare's databases mean nothing here."""
    return database.database_name or database.database_id or worker_name(f"{project}-{database.binding}")


FIELDS = (
    ConfigField(
        name="d1_databases",
        shape=list[ConfigDatabase],
        read=read,
        subfields={
            "d1_databases[].preview_database_id": Subfield("`atoll dev` has data of its own"),
            "d1_databases[].database_internal_env": Subfield("it has no meaning outside Cloudflare"),
            "d1_databases[].jurisdiction": Subfield("the data is on this node"),
            "d1_databases[].migrations_pattern": Subfield(
                "`atoll d1 migrations` reads the *.sql files in `migrations_dir`", level=FindingLevel.WARNING
            ),
            "d1_databases[].remote": REMOTE,
        },
    ),
)
