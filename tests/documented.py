"""Finds the commands in documents and hints, and checks them against the real table of commands."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from atoll.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
SHELLS = ("console", "sh", "bash", "shell")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
PLACEHOLDER = re.compile(r"[A-Z][A-Z_]*|…|<[^>]+>|\.\.\.")
OPERATORS = re.compile(r"\|\|?|&&|;|[<>]{1,2}|&")
ASSIGNMENT = re.compile(r"[A-Z_]+=.*")


class Shown(NamedTuple):
    """A command at its place in a text."""

    place: str
    text: str
    is_whole: bool  # the text is a complete command; otherwise it may only name one
    output: str = ""  # the output shown below it


def documents() -> list[Path]:
    rooms = ("docs", "examples", "deploy", "bench", "engine", "web")
    found = [*ROOT.glob("*.md"), *(path for room in rooms for path in (ROOT / room).rglob("*.md"))]
    return sorted(path for path in found if path.name != "CHANGELOG.md" and "node_modules" not in path.parts)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# Commands in documents


def typed_in(path: Path) -> Iterator[Shown]:
    """The commands of its console blocks, each with its continuation lines and the output below."""
    for _, language, block in FENCE.findall(path.read_text("utf-8")):
        if language == "console":
            yield from _console(named(path), block)
        elif language in SHELLS:
            joined = re.sub(r"(\\|\|)\n\s*", r"\1 ", block)
            yield from (Shown(named(path), line, True) for line in joined.splitlines() if line.strip())


def _console(place: str, block: str) -> Iterator[Shown]:
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    for part in parts:
        lines = part.splitlines()
        size = next(size for size in range(1, len(lines) + 1) if size == len(lines) or _is_complete(lines[:size]))
        yield Shown(place, "\n".join(lines[:size]), True, "\n".join(lines[size:]))


def _is_complete(lines: list[str]) -> bool:
    text = "\n".join(lines)
    if text.rstrip().endswith(("\\", "|", "&&")):
        return False
    try:
        shlex.split(text, comments=True)
    except ValueError:  # an open quotation
        return False
    return True


def inline_in(path: Path) -> Iterator[Shown]:
    text = FENCE.sub("", path.read_text("utf-8"))
    for found in INLINE.findall(text):
        if found.startswith("atoll "):
            yield Shown(named(path), found, False)


# Commands in the code


def sentences(folder: Path) -> Iterator[tuple[str, str]]:
    """Every string with several words in the Python files below a folder, with `NAME` for inserted values."""
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        inner = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
        for node in ast.walk(tree):
            text = None
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "NAME" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner:
                text = node.value
            if text and " " in text.strip() and "<style>" not in text:
                yield f"{named(path)}:{getattr(node, 'lineno', 0)}", text


def commands_in_sentence(place: str, text: str) -> Iterator[Shown]:
    for line in text.splitlines():
        for found in INLINE.findall(line):
            if found.startswith("atoll "):
                yield Shown(place, found, False)
        bare = INLINE.sub("", line)
        if match := re.search(r"(?:^\s+|: )((?:[A-Z_]+=\S+ |\S+ \| |eval \"\$\()?atoll [a-z].*)", bare):
            yield Shown(place, match[1], bare.startswith("  "))


# Checks of commands


def wrongs(shown: Shown) -> list[str]:
    """The errors of each call of `atoll` in a line of shell."""
    return [wrong for words in calls(shown.text) if (wrong := wrong_with(words, is_whole=shown.is_whole))]


def calls(line: str) -> Iterator[list[str]]:
    """The words after `atoll`, for each command of a line that calls it."""
    line = re.sub(r'eval "\$\((.*?)\)"', r"\1", line.replace("\\\n", " "))
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    command: list[str] = []
    skip = False
    for word in [*lexer, ";"]:
        if OPERATORS.fullmatch(word):
            if command[:1] == ["atoll"]:
                yield command[1:]
            skip = "<" in word or ">" in word
            command = [] if not skip else command
            if skip:
                command = ["", *command]  # the word after the file name is not a command
        elif not command and (ASSIGNMENT.fullmatch(word) or word == "sudo"):
            continue
        else:
            command.append(word)


def wrong_with(words: list[str], *, is_whole: bool) -> str:
    """Why the real commands would refuse these words; empty if they accept them."""
    command: click.Command = main
    context = click.Context(main, info_name="atoll")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        inner = None if words[0] not in command.list_commands(context) else command.get_command(context, words[0])
        if inner is None:
            return "" if _is_open(words[0]) else f"there is no command `{context.command_path} {words[0]}`"
        context = click.Context(inner, info_name=words[0], parent=context)
        command, words = inner, words[1:]
    if not words and (not is_whole or not isinstance(command, click.Group)):
        words_missing = [each for each in command.params if each.required]
        return "" if not is_whole or not words_missing else f"`{context.command_path}` needs more"
    try:
        command.make_context(context.info_name, [word for word in words if word != "…"], parent=context.parent)
    except click.exceptions.Exit:  # --help
        return ""
    except click.MissingParameter as error:
        return "" if not is_whole and words == ["…"] else error.format_message()
    except click.BadParameter as error:
        value_open = any(_is_open(word) for word in words)
        return "" if "does not exist" in error.message or value_open else error.format_message()
    except click.ClickException as error:
        return error.format_message()
    return ""


def _is_open(word: str) -> bool:
    return PLACEHOLDER.fullmatch(word) is not None


def command_at(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


def options_of(command: click.Command) -> set[str]:
    """The options of a command and all its subcommands, as written."""
    found = {"--help", *(name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts))}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            found |= options_of(inner)
    return found


def every_option() -> set[str]:
    return {"--version", *options_of(main)}
