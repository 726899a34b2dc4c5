"""What `atoll serve` prints once it serves: commands to try, or one line of JSON for scripts."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import atoll
from atoll.cli.talk import echo_json, paint, say
from atoll.public_address import public_address

if TYPE_CHECKING:
    from atoll.app import Node

EXAMPLE_BODY = '{"name":"hello","script":"export default { fetch() { return new Response(\\"Hello!\\"); } }"}'


def greet_script(node: Node) -> None:
    """One line of JSON."""
    echo_json(ready_facts(node))


def ready_facts(node: Node) -> dict[str, object]:
    """Facts about the running node, for scripts."""
    settings = node.settings
    return {
        "event": "ready",
        "url": public_address(settings, node.server.port).base,
        "host": settings.host,
        "port": node.server.port,
        "pid": os.getpid(),
        "version": atoll.__version__,
        "engines": settings.engines,
        "workers": len(node.deployer.names.under(None)),
        "data": str(settings.data),
        "token_file": str(node.first_token) if node.first_token is not None else None,
        "sandbox": {"held": node.supervisor.layers.held, "missing": node.supervisor.layers.missing},
    }


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def greet(node: Node) -> None:
    """Print what runs and what to try."""
    settings, port = node.settings, node.server.port
    address = public_address(settings, port)
    base = address.base
    control = f"http://localhost:{port}"  # not on the base domain
    if settings.control_hosts:
        control = address.at(settings.control_hosts[0])
    names = node.deployer.names.under(None)
    say("", f"  {paint('Atoll', bold=True)} {atoll.__version__} is serving on {paint(base, fg='cyan')}")
    parts = f"{counted(settings.engines, 'engine')}, {counted(len(names), 'worker')}"
    say(f"  {parts}, data in {settings.data}")
    layers = node.supervisor.layers
    held = str(layers) if layers.held and not layers.missing else paint(str(layers), fg="yellow")
    say(f"  sandbox: {held}", "")
    token = ""
    if not node.access.gate.is_open:
        token = " -H 'Authorization: Bearer …'"
        if node.first_token is not None:
            token = f' -H "Authorization: Bearer $(cat {shlex.quote(str(node.first_token))})"'
            say(f"  token   the control API needs a token: an admin token is in {node.first_token}")
    elif settings.base_domain != "localhost":
        hint = "open to every request to localhost: behind a proxy or tunnel set control_auth to token"
        say(f"  {paint('note', fg='yellow')}    the control API is {hint}")
    if names:
        say(f"  try     curl {address.url(names[0])}")
    say(f"  deploy  curl -X POST {control}/api/workers -H 'Content-Type: application/json'{token} \\")
    say(f"            -d '{EXAMPLE_BODY}'")
    say(f"  look    {control}/  (Ctrl-C stops)", "")
