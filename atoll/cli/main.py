"""`atoll`: the table of commands. A command is imported when it is called, which keeps `atoll --help` fast."""

from __future__ import annotations

import importlib
import io
import os
import sys
from typing import Any, NamedTuple

import click

from atoll import __version__
from atoll.cli.interrupt import ending_at_once
from atoll.cli.talk import Failed
from atoll.manifests.every import command_groups


class CommandEntry(NamedTuple):
    module: str
    help: str
    name: str = ""  # the command's name in the module, if it differs from the one users type


SECTIONS: dict[str, dict[str, CommandEntry]] = {
    "Make": {
        "init": CommandEntry("atoll.cli.init", "Create a project from a template."),
        "build": CommandEntry("atoll.cli.build", "Build a project into a bundle."),
        "deploy": CommandEntry("atoll.cli.deploy", "Build a project, or take a bundle, and deploy it to a node."),
        "publish": CommandEntry("atoll.cli.deploy", "An alias of deploy.", "deploy"),
        "types": CommandEntry("atoll.cli.types.command", "Write TypeScript types for env and all globals."),
    },
    "Run": {
        "dev": CommandEntry("atoll.cli.dev.command", "Run a project and reload it when its files change."),
        "serve": CommandEntry("atoll.cli.serve", "Start a node and serve workers until it is stopped."),
    },
    "Look after": {
        "workers": CommandEntry("atoll.cli.workers", "List, show and delete the workers of a node."),
        "routes": CommandEntry("atoll.cli.routes", "List the hosts and paths that lead to workers."),
        "hosts": CommandEntry("atoll.cli.hosts", "List and release reserved hosts."),
        "versions": CommandEntry("atoll.cli.versions", "List, show, upload and deploy versions of a worker."),
        "deployments": CommandEntry("atoll.cli.versions", "List which versions of a worker got traffic, and when."),
        "pull": CommandEntry("atoll.cli.pull", "Download the code and settings of a version."),
        "rollback": CommandEntry("atoll.cli.versions", "Activate an older version of a worker."),
        "logs": CommandEntry("atoll.cli.logs", "Show the last calls of a worker."),
        "dashboard": CommandEntry("atoll.cli.dashboard", "Print the address that opens the dashboard of a node."),
        "tail": CommandEntry("atoll.cli.logs", "Show the calls of a worker as they happen."),
        "top": CommandEntry("atoll.cli.top", "Watch the workers, tenants and engines of a node."),
        "bench": CommandEntry("atoll.cli.bench", "Measure how many requests a URL answers, and how fast."),
        "errors": CommandEntry("atoll.cli.errors", "Show the errors of workers in groups."),
        "secret": CommandEntry("atoll.cli.secret", "Set, list and delete the secrets of a worker."),
        "backup": CommandEntry("atoll.cli.backup", "Back up everything a running node stores to a file."),
        "restore": CommandEntry("atoll.cli.backup", "Restore a backup into a new data folder."),
        "migrate": CommandEntry("atoll.cli.migrate", "Move what a node stores into PostgreSQL, or back."),
    },
    "Set up": {
        "token": CommandEntry("atoll.cli.token", "Create, list and revoke tokens of a node."),
        "tenant": CommandEntry("atoll.cli.tenant", "Create, list, limit and delete tenants of a node."),
        "nodes": CommandEntry("atoll.cli.nodes", "List, watch and drain the nodes that share a PostgreSQL."),
        "edge": CommandEntry("atoll.cli.nodes", "Print the configuration of a load balancer for several nodes."),
        "doctor": CommandEntry("atoll.cli.doctor", "Check a project, this machine and the node."),
        "config": CommandEntry("atoll.cli.config", "Print the settings of a node and where each comes from."),
        "profile": CommandEntry("atoll.cli.profile", "Name nodes and choose the one that commands use."),
        "completion": CommandEntry("atoll.cli.completion", "Print the completion script of a shell."),
    },
}
SECTIONS["Look after"] |= {name: CommandEntry(group.module, group.help) for name, group in command_groups().items()}
COMMANDS = {name: entry.module for section in SECTIONS.values() for name, entry in section.items()}
ENTRIES = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


# Exit codes. A command that fails ends with 1, click's own.
WRONG_USE = 2
INTERRUPTED = 130  # as shells report SIGINT
NO_READER = 141  # as shells report SIGPIPE


# Commands of other tools, and their equivalents here.
MEANT = {
    "add": "atoll init",
    "create": "atoll init",
    "delete": "atoll workers delete WORKER",
    "generate": "atoll init",
    "help": "atoll --help",
    "list": "atoll workers",
    "login": "atoll profile add NAME --api URL --token -",
    "logout": "atoll profile remove NAME",
    "ls": "atoll workers",
    "new": "atoll init",
    "ps": "atoll workers",
    "run": "atoll dev",
    "secrets": "atoll secret",
    "start": "atoll dev",
    "status": "atoll doctor",
    "undeploy": "atoll workers delete WORKER",
    "up": "atoll serve",
    "version": "atoll --version",
    "whoami": "atoll profile list",
} | {word: f"atoll {name}" for name, group in command_groups().items() for word in group.also}


def usage_hint(error: click.UsageError) -> str:
    """A hint for an error of use: the commands of a group, or the option that shows the help."""
    context = error.ctx
    if context is None:
        return "`atoll --help` shows how it is used"
    names_command = error.message.startswith("No such command")
    if isinstance(context.command, click.Group) and context.parent is not None and names_command:
        return f"the commands of `{context.command_path}` are {', '.join(context.command.list_commands(context))}"
    return f"`{context.command_path} --help` shows how it is used"


class LazyGroup(click.Group):
    def main(self, *args: Any, **extra: Any) -> Any:
        """Show errors of use like all others: the reason and a hint."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # not every terminal can show every character
                stream.reconfigure(errors="backslashreplace")
        try:
            result = super().main(*args, **{**extra, "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(WRONG_USE)
        except click.UsageError as error:
            wrong = Failed(error.format_message().replace("\n\t", " "), usage_hint(error))
            wrong.as_json = "--json" in sys.argv
            wrong.show()
            sys.exit(WRONG_USE)
        except Failed as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:  # one of click's errors: a file that cannot be opened
            wrong = Failed(error.format_message())
            wrong.as_json = "--json" in sys.argv
            wrong.show()
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(INTERRUPTED)
        except UnicodeEncodeError as error:  # an argument that is not UTF-8
            unreadable = Failed(f"{error.object!r} has characters that cannot be sent", "type it in UTF-8")
            unreadable.as_json = "--json" in sys.argv
            unreadable.show()
            sys.exit(WRONG_USE)
        except BrokenPipeError:  # `atoll logs | head`: the reader closed the pipe
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
            command = getattr(importlib.import_module(entry.module), (entry.name or cmd_name).replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            meant = MEANT.get(args[0].lstrip("-")) or (f"atoll {close[0]}" if close else "")
            hint = f", did you mean `{meant}`?" if meant else ""
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
