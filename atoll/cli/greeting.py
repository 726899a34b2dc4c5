"""What `atoll serve` says when it serves: to people what to try, to scripts where it is."""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING

import click

import atoll

if TYPE_CHECKING:
    from atoll.app import Node

EXAMPLE_BODY = '{"name":"hello","script":"export default { fetch() { return new Response(\\"Hello!\\"); } }"}'


def greet_script(node: Node) -> None:
    """One line of JSON."""
    click.echo(json.dumps(ready_facts(node)))


def ready_facts(node: Node) -> dict[str, object]:
    """What a script wants to know of a node that serves."""
    settings = node.settings
    return {
        "event": "ready",
        "url": f"http://{settings.base_domain}:{node.server.port}",
        "host": settings.host,
        "port": node.server.port,
        "pid": os.getpid(),
        "version": atoll.__version__,
        "engines": settings.engines,
        "workers": len(node.deployer.all()),
        "data": str(settings.data),
        "token_file": str(node.first_token) if node.first_token is not None else None,
        "sandbox": {"held": node.supervisor.layers.held, "missing": node.supervisor.layers.missing},
    }


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def greet(node: Node) -> None:
    """Say what runs and what to try."""
    settings, port = node.settings, node.server.port
    base = f"http://{settings.base_domain}:{port}"
    control = f"http://{(*settings.control_hosts, 'localhost')[0]}:{port}"  # it does not answer on the base domain
    names = [deployment.name for deployment in node.deployer.all()]
    say = click.style
    click.echo(f"\n  {say('Atoll', bold=True)} {atoll.__version__} is serving on {say(base, fg='cyan')}", err=True)
    parts = f"{counted(settings.engines, 'engine')}, {counted(len(names), 'worker')}"
    click.echo(f"  {parts}, data in {settings.data}", err=True)
    layers = node.supervisor.layers
    held = str(layers) if layers.held and not layers.missing else say(str(layers), fg="yellow")
    click.echo(f"  sandbox: {held}\n", err=True)
    token = ""
    if not node.access.gate.is_open:
        token = " -H 'Authorization: Bearer …'"
        if node.first_token is not None:
            token = f' -H "Authorization: Bearer $(cat {shlex.quote(str(node.first_token))})"'
            click.echo(f"  token   the control API needs one: an admin's is in {node.first_token}", err=True)
    elif settings.base_domain != "localhost":
        hint = "open to whoever asks this machine for localhost: behind a proxy or tunnel set control_auth to token"
        click.echo(f"  {say('note', fg='yellow')}    the control API is {hint}", err=True)
    if names:
        click.echo(f"  try     curl {node.control.url_of(names[0])}", err=True)
    click.echo(f"  deploy  curl -X POST {control}/api/workers -H 'Content-Type: application/json'{token} \\", err=True)
    click.echo(f"            -d '{EXAMPLE_BODY}'", err=True)
    click.echo(f"  look    {control}/  (Ctrl-C stops)\n", err=True)
