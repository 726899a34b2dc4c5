"""Expressions of a query: SQL for SQLite, and the type that Cloudflare shows."""

from __future__ import annotations

from typing import Final, NamedTuple

from atoll.bindings.analytics_engine.sql.tokens import QueryError

STRING, FLOAT, TIME = "String", "Float64", "DateTime"
BIG, SMALL, FLAG, SIGNED, NOTHING = "UInt64", "UInt32", "UInt8", "Int64", "Nullable(Nothing)"
INTERVAL = "Interval"
QUOTED: Final = (BIG, SIGNED)  # JSON has them as texts, as ClickHouse writes them
MAX_LENGTH = 20_000  # characters of one expression: names of results may be used in others, again and again

SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400, "WEEK": 604_800}
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


class Expr(NamedTuple):
    sql: str
    type: str
    is_aggregate: bool = False
    literal: str | None = None  # of a text
    months: int = 0  # of an interval that is no number of seconds


def expr(sql: str, type: str, *parts: Expr) -> Expr:
    """An expression made of others."""
    if len(sql) > MAX_LENGTH:
        raise QueryError("an expression is too long")
    return Expr(sql, type, any(part.is_aggregate for part in parts))


def text(value: str) -> Expr:
    if "\0" in value:
        raise QueryError("a text has a NUL character")
    return Expr("'" + value.replace("'", "''") + "'", STRING, literal=value)


def interval(count: int, unit: str) -> Expr:
    unit = unit.removesuffix("S")
    if unit in SECONDS:
        return Expr(str(count * SECONDS[unit]), INTERVAL)
    if unit in MONTHS:
        return Expr("0", INTERVAL, months=count * MONTHS[unit])
    raise QueryError(f"INTERVAL has no unit {unit}: use {', '.join([*SECONDS, *MONTHS])}")


def as_time(value: Expr) -> Expr:
    """A text as a time."""
    if value.type != STRING:
        return value
    return expr(f"unixepoch({value.sql})", TIME, value)


def added(left: Expr, sign: str, right: Expr) -> Expr:
    if INTERVAL in (left.type, right.type):
        if left.type == INTERVAL and sign == "+":
            left, right = right, left
        left = as_time(left)
        if left.type != TIME:
            raise QueryError("an INTERVAL can be added to times only")
        if right.months:
            return expr(f"unixepoch({left.sql}, 'unixepoch', '{sign}{right.months} months')", TIME, left)
        return expr(f"({left.sql} {sign} {right.sql})", TIME, left)
    if left.type == TIME and right.type == TIME:
        return expr(f"({left.sql} {sign} {right.sql})", SIGNED, left, right)
    if TIME in (left.type, right.type):
        return expr(f"({left.sql} {sign} {right.sql})", TIME, left, right)
    return expr(f"({left.sql} {sign} {right.sql})", number_type(left, right, signed=sign == "-"), left, right)


def multiplied(left: Expr, sign: str, right: Expr) -> Expr:
    for each in (left, right):
        if each.type in (STRING, INTERVAL):
            raise QueryError(f"`{sign}` takes numbers, not a value of the type {each.type}")
    if sign == "/":
        return expr(f"({left.sql} * 1.0 / {right.sql})", FLOAT, left, right)
    return expr(f"({left.sql} {sign} {right.sql})", number_type(left, right), left, right)


def number_type(*parts: Expr, signed: bool = False) -> str:
    for each in parts:
        if each.type == STRING:
            raise QueryError("a text is used as a number")
    if any(each.type == FLOAT for each in parts):
        return FLOAT
    return SIGNED if signed or any(each.type == SIGNED for each in parts) else BIG


def compared(left: Expr, sign: str, right: Expr) -> Expr:
    if TIME in (left.type, right.type):
        left, right = as_time(left), as_time(right)
    sign = {"==": "=", "<>": "!="}.get(sign, sign)
    return expr(f"({left.sql} {sign} {right.sql})", FLAG, left, right)
