"""`atoll analytics`: data points that workers wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from atoll.cli.ask import read_text
from atoll.cli.options import json_option, node_options
from atoll.cli.talk import ask_first, done, fail, show_json, show_table

if TYPE_CHECKING:
    from atoll.cli.client import Client

AT = "/api/analytics_engine"


@click.group()
def analytics() -> None:
    """Query the data points that workers wrote with `env.NAME.writeDataPoint()`.

    \b
    Examples:
      atoll analytics list
      atoll analytics sql "SELECT blob1, count() AS n FROM visits GROUP BY blob1 ORDER BY n DESC LIMIT 10"
      atoll analytics delete visits --yes
    """


@analytics.command("sql")
@click.argument("query")
@node_options
@json_option
def sql(client: Client, query: str, as_json: bool) -> None:
    """Run QUERY, a SELECT or SHOW TABLES; `-` reads it from stdin."""
    import msgspec

    text = read_text("the query") if query == "-" else query
    response = client.send("POST", f"{AT}/sql", text.encode(), {"Content-Type": "text/plain"})
    try:
        answer = msgspec.json.decode(response.read())
        if not isinstance(answer, dict) or "meta" not in answer:
            raise msgspec.DecodeError
    except (msgspec.DecodeError, RecursionError):
        fail("the answer is no JSON document", "leave FORMAT out of the query")
    if as_json:
        show_json(answer)
        return
    names = [each["name"] for each in answer["meta"]]
    rows = [tuple("" if row[name] is None else str(row[name]) for name in names) for row in answer["data"]]
    show_table(tuple(names), rows, "no rows")


@analytics.command("list")
@node_options
@json_option
def list_datasets(client: Client, as_json: bool) -> None:
    """List the datasets."""
    found = client.all(f"{AT}/datasets", "datasets")
    if as_json:
        show_json(found)
        return
    rows = [(each["name"], each["points"], each["bytes"]) for each in found]
    show_table(("name", "points", "bytes"), rows, "no datasets yet: a deploy makes those that its config names")


@analytics.command("delete")
@click.argument("dataset")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@node_options
@json_option
def delete(client: Client, dataset: str, yes: bool, as_json: bool) -> None:
    """Delete a dataset and its data points."""
    from atoll.cli.client import segment

    ask_first(f"Delete the dataset {dataset} and its data points on {client.target.api}?", yes)
    client.delete(f"{AT}/datasets/{segment(dataset)}")
    done(f"deleted {dataset}", as_json, deleted=dataset)
