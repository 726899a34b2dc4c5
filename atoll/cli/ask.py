"""What a command reads: hidden answers typed in a terminal, and values piped into it."""

from __future__ import annotations

import sys

import click

from atoll.cli.talk import fail, say
from atoll.plain import plain_line


def read_hidden(what: str, *, allow_empty: bool = False) -> str:
    """A secret: asked for in a terminal, without an echo, or all of stdin without one trailing newline."""
    if sys.stdin.isatty():
        return _typed(what, allow_empty=allow_empty)
    return _without_newline(_text(read_stdin(), what))


def read_token() -> str:
    """A token: asked for in a terminal, without an echo, or the first line of stdin. Raises Failed if there is none."""
    token = _typed("Token") if sys.stdin.isatty() else _text(sys.stdin.buffer.readline(), "the token")
    if not token.strip():
        fail(
            "--token is `-`, and stdin has no token",
            "pipe one in, such as `atoll profile add NAME --api URL --token - < admin-token`",
        )
    return token.strip()


def read_stdin(what: str = "") -> bytes:
    """All of stdin. With `what`, a terminal first shows what to type."""
    if what and sys.stdin.isatty():
        say(f"type {what}; Ctrl-D ends it")
    return sys.stdin.buffer.read()


def read_text(what: str) -> str:
    """All of stdin, as text."""
    return _text(read_stdin(what), what)


def _typed(what: str, *, allow_empty: bool = False) -> str:
    default = "" if allow_empty else None
    return str(click.prompt(plain_line(what), hide_input=True, err=True, default=default, show_default=False))


def _text(raw: bytes, what: str) -> str:
    try:
        return raw.decode("utf-8-sig")  # without the byte order mark that Windows programs write
    except UnicodeDecodeError:
        fail(f"{what} is not UTF-8", "encode binary data as text first, for example with base64")


def _without_newline(text: str) -> str:
    return text.removesuffix("\r\n") if text.endswith("\r\n") else text.removesuffix("\n")
