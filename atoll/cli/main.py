"""`atoll`: the table of commands. A command is imported when it is called, so that `atoll --help` stays quick."""

from __future__ import annotations

import importlib

import click

from atoll import __version__

# name -> module; the command in it has the name of the command
COMMANDS = {
    "serve": "atoll.cli.serve",
}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="atoll", message="%(prog)s %(version)s")
def main() -> None:
    """Atoll runs JavaScript workers in V8 isolates on your own machine."""


if __name__ == "__main__":
    main()
