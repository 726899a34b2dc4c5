"""`atoll nodes`: the nodes that share a PostgreSQL. `atoll edge`: the configuration of a load balancer for them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.edge_files import EDGES
from atoll.cli.options import json_option, node_options
from atoll.cli.talk import done, echo, fail, show_json, show_table

if TYPE_CHECKING:
    from atoll.cli.client import Client

COLUMNS = ("name", "address", "state", "change", "behind", "release", "started")


@click.group(invoke_without_command=True)
@click.pass_context
def nodes(context: click.Context) -> None:
    """List, watch and drain the nodes that share a PostgreSQL. For operators.

    \b
    Examples:
      atoll nodes
      atoll nodes watch
      atoll nodes drain 10.0.0.7:8080
    """
    if context.invoked_subcommand is None:
        context.invoke(list_nodes)


@nodes.command("list")
@node_options
@json_option
def list_nodes(client: Client, as_json: bool) -> None:
    """List the nodes, the oldest first."""
    found = client.get("/api/nodes")["nodes"]
    if as_json:
        show_json(found)
    else:
        _show(found)


@nodes.command("watch")
@click.option("--seconds", type=click.FloatRange(min=0.1), default=2.0, help="Time between two lists.")
@click.option("--times", type=click.IntRange(min=1), help="Stop after this number of lists.")
@node_options
@json_option
def watch(client: Client, seconds: float, times: int | None, as_json: bool) -> None:
    """List the nodes again and again, until Ctrl-C."""
    count = 0
    while True:
        found = client.get("/api/nodes")["nodes"]
        show_json(found) if as_json else _show(found)
        count += 1
        if count == times:
            return
        time.sleep(seconds)
        if not as_json:
            echo()


@nodes.command("drain")
@click.argument("name")
@node_options
@json_option
def drain(client: Client, name: str, as_json: bool) -> None:
    """Take a node out of service: edges send it nothing new, and it starts no crons and batches. Then stop it."""
    found = client.post(f"/api/nodes/{name}/drain", {})["nodes"]
    done(f"{name} drains: stop it when its calls are over, or start it again to undo this", as_json, nodes=found)


def _show(found: list[dict[str, Any]]) -> None:
    rows = [(*(str(node[name]) for name in COLUMNS[:-1]), node["started_at"]) for node in found]
    show_table(COLUMNS, rows, "no nodes")


@click.command()
@click.argument("kind", type=click.Choice(list(EDGES)))
@click.option("--port", type=click.IntRange(1, 65535), default=80, help="Port that the edge listens on.")
@node_options
@json_option
def edge(client: Client, kind: str, port: int, as_json: bool) -> None:
    """Print the configuration of a load balancer for the nodes that run: nginx, HAProxy, Traefik or Caddy.

    Requests for a host go to the same node as long as it runs, so its isolates stay warm. If a node fails, requests
    that may be repeated go to the next one.

    \b
    Examples:
      atoll edge nginx > /etc/nginx/conf.d/atoll.conf && nginx -s reload
      atoll edge haproxy --port 8080 > haproxy.cfg
    """
    found = client.get("/api/nodes")["nodes"]
    addresses = sorted(node["address"] for node in found if node["state"] in ("starting", "serving"))
    if not addresses:
        fail("no node is serving", "`atoll nodes` lists them")
    text = EDGES[kind](addresses, port)
    if as_json:
        show_json({"config": text})
    else:
        echo(*text.splitlines())
