"""`atoll`: the table of commands. A command is imported when it is called, so that `atoll --help` stays quick."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, NamedTuple

import click

from atoll import __version__
from atoll.cli.interrupt import ending_at_once
from atoll.cli.talk import Failed


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


# Exit codes; a command that failed ends with 1, as click has it.
WRONG_USE = 2
INTERRUPTED = 130  # as shells tell of SIGINT
NO_READER = 141  # and of SIGPIPE


class LazyGroup(click.Group):
    def main(self, *args: Any, **extra: Any) -> Any:
        """Errors of use look like all others: what was wrong, and a hint."""
        try:
            result = super().main(*args, **{**extra, "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(WRONG_USE)
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx is not None else "atoll"
            wrong = Failed(error.format_message().replace("\n\t", " "), f"`{command} --help` shows how it is used")
            wrong.as_json = "--json" in sys.argv
            wrong.show()
            sys.exit(WRONG_USE)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(INTERRUPTED)
        except UnicodeEncodeError as error:  # a word of the command line that is not UTF-8
            unreadable = Failed(f"{error.object!r} has letters that cannot be sent", "is it typed in UTF-8?")
            unreadable.as_json = "--json" in sys.argv
            unreadable.show()
            sys.exit(WRONG_USE)
        except BrokenPipeError:  # `atoll logs | head`: who reads has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(NO_READER)
        sys.exit(result if isinstance(result, int) else 0)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = ENTRIES.get(cmd_name)
        if entry is None:
            return None
        with ending_at_once():
            command = getattr(importlib.import_module(entry.module), entry.name or cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f", did you mean `{close[0]}`?" if close else ""
            ctx.fail(f"there is no command `{args[0]}`{hint}")
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
