"""Writes docs/reference/cli.md from the commands themselves: `python tools/gen_cli.py`.

The source is the help texts, so --help and the page agree.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from atoll.cli.main import COMMANDS, main

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
HEAD = """# Command line

Data goes to stdout, everything else to stderr. A failed command prints a line that starts with `error:`, and a line
that starts with `hint:` if there is advice. Colours are used in terminals; `NO_COLOR` turns them off,
`FORCE_COLOR` on.

Control characters in text of workers, clients and nodes are printed as escapes (`\\x1b`, `\\r`, `\\u202e`), in a
terminal and in a pipe. Further lines of a message are indented. `atoll kv get`, `atoll kv export` and `atoll backup`
write data byte for byte to a file or a pipe. Times are in UTC and end in `Z`.

Every command has `--json`. Its data is then JSON (one line per event of `dev` and `tail`), and an error is
`{"error": {"message": …, "hint": …}}` on stderr, with the `code` and `status` of the node if the node refused.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | the command failed |
| 2 | wrong usage |
| 130 | Ctrl-C |
| 141 | the reader of the output closed it |

Commands find their node by `--api`, `ATOLL_API`, `--profile`, the default profile, or http://localhost:8080, in this
order. A token comes from `--token`, `ATOLL_TOKEN` or the profile. A profile's token is sent only to its own node.
`--token -` prompts for it without showing it, or reads the first line of stdin. An empty option (`--tenant "$UNSET"`)
is an error.

`tools/gen_cli.py` generates this page from the help of the commands.

## atoll

| option | |
|---|---|
| `--version` | Show the version and exit. |
| `-h`, `--help` | Show what there is and exit; also after a command. |
"""


def sections(name: str, command: click.Command) -> Iterator[str]:
    yield f"\n## {name}\n\n{described(command)}\n"
    rows = [row for parameter in command.params if (row := described_parameter(parameter))]
    if rows:
        yield "\n| option | |\n|---|---|\n" + "\n".join(rows) + "\n"
    if isinstance(command, click.Group):
        context = click.Context(command)
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from sections(f"{name} {inner}", found)


def described(command: click.Command) -> str:
    """The help text as Markdown: paragraphs, and examples as a console block."""
    text = textwrap.dedent(command.help or "").strip()
    parts = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.replace("\b", "").strip().splitlines()
        if lines[0].strip() in ("Examples:", "Keys:", "Templates:"):
            examples = lines[0].strip() == "Examples:"
            body = "\n".join(("$ " if examples else "") + line.strip() for line in lines[1:])
            fence = "console" if examples else "text"
            parts.append(f"{'' if examples else lines[0].strip() + chr(10) * 2}```{fence}\n{body}\n```")
        else:
            parts.append(" ".join(line.strip() for line in lines))
    return "\n\n".join(parts)


def described_parameter(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return (
            f"| `{parameter.human_readable_name.strip('[]')}` | {'Required.' if parameter.required else 'Optional.'} |"
        )
    assert isinstance(parameter, click.Option)
    metavar = "" if parameter.is_flag or not parameter.metavar else f" {parameter.metavar}"
    names = ", ".join(f"`{name}{metavar}`" for name in (*parameter.opts, *parameter.secondary_opts))
    text = (parameter.help or "").replace("  [", " [").replace("|", "\\|")
    default = re.search(r" \[default: (.*)\]$", text)
    if default:
        text = f"{text[: default.start()]} Default: {default[1]}."
    elif parameter.show_default:
        text += f" Default: {parameter.default}."
    return f"| {names} | {text} |"


def page() -> str:
    context = click.Context(main)
    parts = [HEAD]
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        if name == "publish":
            parts += ["\n## atoll publish\n\nThe same as [atoll deploy](#atoll-deploy).\n"]
            rows = [row for parameter in command.params if (row := described_parameter(parameter))]
            parts += ["\n| option | |\n|---|---|\n" + "\n".join(rows) + "\n"]
            continue
        parts += sections(f"atoll {name}", command)
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
