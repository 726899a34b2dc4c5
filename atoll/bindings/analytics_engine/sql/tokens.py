"""The words of a query."""

from __future__ import annotations

import re
from typing import NamedTuple

TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>"[^"\x00]+"|`[^`\x00]+`)
    |(?P<text>'(?:[^'\\]|\\.|'')*')
    |(?P<sign><=|>=|<>|!=|==|\|\||[-+*/%(),.<>=;])""",
    re.VERBOSE | re.DOTALL,
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "", "b": "\b"}
ESCAPED = re.compile(r"\\(.)|''", re.DOTALL)


class QueryError(Exception):
    """The query cannot be run; the message says why."""


class SqlToken(NamedTuple):
    kind: str  # number, name, quoted, text, sign, or end
    text: str  # a name as it was written, a text without its quotes

    @property
    def word(self) -> str:
        """The keyword that it may be."""
        return self.text.upper() if self.kind == "name" else ""


def tokens_of(query: str) -> list[SqlToken]:
    found: list[SqlToken] = []
    at = 0
    while at < len(query):
        match = TOKEN.match(query, at)
        if match is None:
            raise QueryError(f"the query cannot be read at `{query[at : at + 20]}`")
        at, kind, text = match.end(), match.lastgroup or "", match[0]
        if kind == "text":
            text = ESCAPED.sub(lambda each: "'" if each[1] is None else ESCAPES.get(each[1], each[1]), text[1:-1])
        elif kind == "quoted":
            text = text[1:-1]
        if kind != "space":
            found.append(SqlToken(kind, text))
    return [*found, SqlToken("end", "the end of the query")]
