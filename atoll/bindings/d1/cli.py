"""`atoll d1`: databases, SQL and migrations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from atoll.bindings.d1.data import cli as data_cli
from atoll.cli.options import json_option, node_options
from atoll.cli.talk import ask_first, done, echo, fail, show_json, show_table, shown_time
from atoll.plain import plain_line

if TYPE_CHECKING:
    from atoll.cli.client import Client

LARGE = 3 << 20
NUMBER = re.compile(r"\d+")


@click.group()
def d1() -> None:
    """Create D1 databases, run SQL on them, apply migrations, export, import and restore them.

    \b
    Examples:
      atoll d1 create shop
      atoll d1 execute shop --command "SELECT * FROM orders"
      atoll d1 migrations create shop "add orders"
      atoll d1 migrations apply shop
    """


d1.add_command(data_cli.export)
d1.add_command(data_cli.load)
d1.add_command(data_cli.time_travel)


def _at(database: str, *rest: str) -> str:
    from atoll.cli.client import segment

    return "/".join(["/api/d1", segment(database), *rest])


def _run(client: Client, database: str, sql: str) -> list[dict[str, Any]]:
    found = client.post(_at(database, "query"), {"sql": sql})["result"]
    assert isinstance(found, list)
    return found


@d1.command("list")
@node_options
@json_option
def list_databases(client: Client, as_json: bool) -> None:
    """List the databases."""
    found = client.all("/api/d1", "databases")
    if as_json:
        show_json(found)
        return
    rows = [(each["name"], each["uuid"], each["file_size"], shown_time(each["created_at"])) for each in found]
    empty = "no databases yet: a deploy that binds one makes it, and `atoll d1 create` does"
    show_table(("name", "uuid", "bytes", "created"), rows, empty)


@d1.command("create")
@click.argument("name")
@node_options
@json_option
def create(client: Client, name: str, as_json: bool) -> None:
    """Create an empty database."""
    made = client.post("/api/d1", {"name": name})
    done(f"made {name}", as_json, **made)


@d1.command("delete")
@click.argument("database")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@node_options
@json_option
def delete(client: Client, database: str, yes: bool, as_json: bool) -> None:
    """Delete a database and all that it stores."""
    if not yes:
        size = client.get(_at(database))["file_size"]
        ask_first(f"Delete {database} with {size} bytes on {client.target.api}?", yes)
    client.delete(_at(database))
    done(f"deleted {database}", as_json, deleted=database)


@d1.command("execute")
@click.argument("database")
@click.option("--command", "sql", metavar="SQL", help="One or more statements.")
@click.option("--file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file with statements.")
@node_options
@json_option
def execute(client: Client, database: str, sql: str | None, file: Path | None, as_json: bool) -> None:
    """Run SQL on a database. All statements run in one transaction. A large file is imported, without its results."""
    if (sql is None) == (file is None):
        raise click.UsageError("give either --command SQL or --file FILE")
    if file is not None and file.stat().st_size > LARGE:  # more than one request may have
        result = data_cli.send_file(client, database, file, as_json)
        done(f"ran {result['num_queries']} statements", as_json, **result)
        return
    found = _run(client, database, sql if file is None else _text(file))  # type: ignore[arg-type]  # one is given
    if as_json:
        show_json(found)
        return
    for each in found:
        rows, meta = each["results"], each["meta"]
        if rows:
            show_table([plain_line(name) for name in rows[0]], [[_shown(v) for v in row.values()] for row in rows], "")
        else:
            echo(f"no rows; {meta['changes']} changed")


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError:
        fail(f"{file} is not UTF-8", "save it as UTF-8")


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    return f"<{len(value)} bytes>" if isinstance(value, list) else plain_line(str(value))


@d1.group("migrations")
def migrations() -> None:
    """Create migrations of a database, list and apply those that it does not have yet.

    DATABASE is the name of a database, or of its binding in the project's config.
    """


class Migrations(NamedTuple):
    """The migrations of a database as the project's config has them."""

    database: str
    folder: Path
    table: str

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.sql"), key=lambda file: (_number(file), file.name))

    def pending(self, client: Client) -> list[Path]:
        """Those that the database does not have. Makes the table of those it has."""
        made = (
            f"CREATE TABLE IF NOT EXISTS {self.quoted} (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, "
            "applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)"
        )
        found = _run(client, self.database, f"{made}; SELECT name FROM {self.quoted} ORDER BY id")[-1]["results"]
        applied = {row["name"] for row in found}
        return [file for file in self.files() if file.name not in applied]

    @property
    def quoted(self) -> str:
        return '"' + self.table.replace('"', '""') + '"'


def _number(file: Path) -> int:
    found = NUMBER.match(file.name)
    return int(found[0]) if found else 0


def _find(database: str, environment: str) -> Migrations:
    import msgspec

    from atoll.bindings.d1.config import ConfigDatabase, name_of
    from atoll.cli.talk import Failed
    from atoll.project.files import find_config
    from atoll.project.model import ProjectError
    from atoll.project.read import read_project

    path = find_config(Path.cwd())
    if path is None:
        return Migrations(database, Path("migrations"), "d1_migrations")
    try:
        project = read_project(None, environment)
    except ProjectError as error:
        raise Failed(str(error), error.hint) from None
    from atoll.project.files import read_config

    config = read_config(path)
    within = config.get("env", {}).get(environment, {}) if environment else config
    for entry in msgspec.convert(within.get("d1_databases", []), list[ConfigDatabase]):
        name = name_of(entry, project.name)
        if database in (name, entry.binding):
            return Migrations(name, path.parent / entry.migrations_dir, entry.migrations_table)
    raise Failed(f"{path.name} has no database `{database}`", "add it to `d1_databases`, or check its name")


def _environment_option(command: Any) -> Any:
    return click.option("-e", "--env", "environment", default="", metavar="NAME", help="An environment of the config.")(
        command
    )


@migrations.command("create")
@click.argument("database")
@click.argument("message")
@_environment_option
@json_option
def create_migration(database: str, message: str, environment: str, as_json: bool) -> None:
    """Make an empty migration: a file with the next number and MESSAGE as its name."""
    found = _find(database, environment)
    words = re.sub(r"[^A-Za-z0-9]+", "_", message).strip("_") or "migration"
    number = max((_number(file) for file in found.files()), default=0) + 1
    file = found.folder / f"{number:04d}_{words}.sql"
    found.folder.mkdir(parents=True, exist_ok=True)
    with file.open("x") as opened:
        opened.write(f"-- Migration {number:04d}: {plain_line(message)}\n")
    done(f"made {file}", as_json, path=str(file))


@migrations.command("list")
@click.argument("database")
@_environment_option
@node_options
@json_option
def list_migrations(client: Client, database: str, environment: str, as_json: bool) -> None:
    """List the migrations that the database does not have yet."""
    names = [file.name for file in _find(database, environment).pending(client)]
    if as_json:
        show_json(names)
    else:
        show_table(("to be applied",), [(name,) for name in names], "the database has all migrations")


@migrations.command("apply")
@click.argument("database")
@_environment_option
@node_options
@json_option
def apply(client: Client, database: str, environment: str, as_json: bool) -> None:
    """Apply the migrations that the database does not have yet, in order. Each is applied as a whole or not at all."""
    found = _find(database, environment)
    if not found.files():
        fail(f"there are no migrations in {found.folder}", f"make one: atoll d1 migrations create {database} MESSAGE")
    names = []
    for file in found.pending(client):
        name = file.name.replace("'", "''")
        # The note comes first: a comment without an end in the file cannot swallow it.
        _run(client, found.database, f"INSERT INTO {found.quoted} (name) VALUES ('{name}');\n{_text(file)}")
        names.append(file.name)
        if not as_json:
            echo(f"applied {file.name}")
    done(f"{found.database} has all migrations", as_json, applied=names)
