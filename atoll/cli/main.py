"""`atoll`: the table of commands. A command is imported when it is called, so that `atoll --help` stays quick."""

from __future__ import annotations

import importlib
from typing import NamedTuple

import click

from atoll import __version__


class Entry(NamedTuple):
    module: str
    help: str
    name: str = ""  # of the command in the module, where it is not the word that is typed


SECTIONS: dict[str, dict[str, Entry]] = {
    "Make": {
        "init": Entry("atoll.cli.init", "Start a project from a template."),
        "build": Entry("atoll.cli.build", "Build a project into a bundle."),
        "deploy": Entry("atoll.cli.deploy", "Build a project, or take a bundle, and deploy it to a node."),
        "publish": Entry("atoll.cli.deploy", "The same as deploy.", "deploy"),
        "types": Entry("atoll.cli.types.command", "Write TypeScript's types of env and all globals."),
    },
    "Run": {
        "dev": Entry("atoll.cli.dev.command", "Run a project, and follow its files."),
        "serve": Entry("atoll.cli.serve", "Start a node and serve workers until it is told to stop."),
    },
    "Look after": {
        "workers": Entry("atoll.cli.workers", "List, show and delete the workers of a node."),
        "routes": Entry("atoll.cli.routes", "List the hosts and paths that lead to workers."),
        "versions": Entry("atoll.cli.versions", "List the versions of a worker."),
        "rollback": Entry("atoll.cli.versions", "Answer with an older version again."),
        "logs": Entry("atoll.cli.logs", "Show the last calls of a worker."),
        "tail": Entry("atoll.cli.logs", "Show the calls of a worker as they happen."),
        "secret": Entry("atoll.cli.secret", "Set, list and delete the secrets of a worker."),
        "cron": Entry("atoll.cli.cron", "See when crons run and how they ran, and run one now."),
        "queues": Entry("atoll.cli.queues", "See what waits in queues, send messages, pause and empty them."),
        "kv": Entry("atoll.cli.kv", "Look into KV namespaces, change, fill and empty them."),
        "backup": Entry("atoll.cli.backup", "Copy everything a running node keeps into a file."),
        "restore": Entry("atoll.cli.backup", "Make a new data folder from a backup."),
    },
    "Set up": {
        "token": Entry("atoll.cli.token", "Make, list and revoke tokens of a node."),
        "tenant": Entry("atoll.cli.tenant", "Make, list, bound and delete tenants of a node."),
        "doctor": Entry("atoll.cli.doctor", "Look at a project, this machine and the node."),
        "config": Entry("atoll.cli.config", "Print the settings of a node, and where each comes from."),
        "profile": Entry("atoll.cli.profile", "Name nodes, and choose the one commands speak to."),
        "completion": Entry("atoll.cli.completion", "Print the script that completes commands in a shell."),
    },
}
COMMANDS = {name: entry.module for section in SECTIONS.values() for name, entry in section.items()}
ENTRIES = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = ENTRIES.get(cmd_name)
        if entry is None:
            return None
        command = getattr(importlib.import_module(entry.module), entry.name or cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            ctx.fail(f"There is no command `{args[0]}`.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.help) for name, entry in section.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="atoll", message="%(prog)s %(version)s")
def main() -> None:
    """Atoll runs JavaScript and TypeScript workers in V8 isolates on your own machine.

    \b
    Examples:
      atoll init hello my-worker
      atoll dev my-worker
      atoll deploy my-worker
    """


if __name__ == "__main__":
    main()
