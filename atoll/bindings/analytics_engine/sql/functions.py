"""The functions of a query. Only what is in these tables reaches SQLite."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from atoll.bindings.analytics_engine.sql.expressions import (
    BIG,
    FLAG,
    FLOAT,
    INTERVAL,
    NOTHING,
    SIGNED,
    SMALL,
    STRING,
    TIME,
    Expr,
    as_time,
    expr,
)  # fmt: skip
from atoll.bindings.analytics_engine.sql.tokens import QueryError

MONDAY = 345_600  # the first one since 1970
FORMATS = {"Y": "%Y", "m": "%m", "d": "%d", "H": "%H", "M": "%M", "i": "%M", "S": "%S", "s": "%S", "F": "%Y-%m-%d",
           "T": "%H:%M:%S", "j": "%j", "%": "%%"}  # fmt: skip


class Function(NamedTuple):
    least: int  # arguments
    most: int
    build: Callable[[list[Expr]], Expr]


def _plain(sql: str, type: str | None, least: int = 1, most: int | None = None) -> Function:
    """A function that SQLite has. `{}` are its arguments; no type: that of the last argument."""

    def build(args: list[Expr]) -> Expr:
        joined = ", ".join(arg.sql for arg in args)
        return expr(sql.format(joined, *(arg.sql for arg in args)), type or args[-1].type, *args)

    return Function(least, least if most is None else most, build)


def _aggregate(build: Callable[[list[Expr]], Expr], least: int = 1, most: int | None = None) -> Function:
    def checked(args: list[Expr]) -> Expr:
        if any(arg.is_aggregate for arg in args):
            raise QueryError("an aggregate is inside another one")
        return build(args)._replace(is_aggregate=True)

    return Function(least, least if most is None else most, checked)


def _sum(args: list[Expr]) -> Expr:
    kind = FLOAT if args[0].type == FLOAT else BIG
    if args[0].type == STRING:
        raise QueryError("sum() takes numbers, not texts")
    only = f" FILTER (WHERE {args[1].sql})" if len(args) > 1 else ""
    return expr(f"coalesce(sum({args[0].sql}){only}, 0)", kind, *args)


def _avg(args: list[Expr]) -> Expr:
    only = f" FILTER (WHERE {args[1].sql})" if len(args) > 1 else ""
    return expr(f"avg({args[0].sql}){only}", FLOAT, *args)


def _count(args: list[Expr]) -> Expr:
    return expr(f"count({args[0].sql if args else '*'})", BIG, *args)


def _start(seconds: int) -> Function:
    return Function(1, 1, lambda args: _floor(as_time(args[0]), seconds))


def _floor(at: Expr, seconds: int) -> Expr:
    first = MONDAY if seconds % 604_800 == 0 else 0
    return expr(f"(({at.sql} - {first}) / {seconds} * {seconds} + {first})", TIME, at)


def _to_start_of_interval(args: list[Expr]) -> Expr:
    at, length = as_time(args[0]), args[1]
    if at.type != TIME or length.type != INTERVAL:
        raise QueryError("toStartOfInterval() takes a time and an INTERVAL")
    if length.months in (1, 12):
        return expr(
            f"unixepoch({at.sql}, 'unixepoch', 'start of {'month' if length.months == 1 else 'year'}')", TIME, at
        )
    if length.months or not int(length.sql) > 0:
        raise QueryError("toStartOfInterval() takes seconds to weeks, one month or one year")
    return _floor(at, int(length.sql))


def _part(code: str, type: str = SMALL) -> Function:
    """A part of a time, as a number."""

    def build(args: list[Expr]) -> Expr:
        return expr(f"CAST(strftime('{code}', {as_time(args[0]).sql}, 'unixepoch') AS INTEGER)", type, *args)

    return Function(1, 1, build)


def _start_of(what: str) -> Function:
    return Function(
        1, 1, lambda args: expr(f"unixepoch({as_time(args[0]).sql}, 'unixepoch', 'start of {what}')", TIME, *args)
    )


def _format_time(args: list[Expr]) -> Expr:
    form = args[1].literal
    if form is None:
        raise QueryError("formatDateTime() takes its format as a text")
    pieces = form.replace("'", "''").split("%%")
    for code in {piece[:1] for part in pieces for piece in part.split("%")[1:]}:
        if code not in FORMATS:
            raise QueryError(f"formatDateTime() does not know %{code}")
    made = "%%".join(
        "".join([part.split("%")[0], *(FORMATS[p[0]] + p[1:] for p in part.split("%")[1:])]) for part in pieces
    )
    return expr(f"strftime('{made}', {as_time(args[0]).sql}, 'unixepoch')", STRING, args[0])


def _if(args: list[Expr]) -> Expr:
    kind = args[1].type if args[1].type != NOTHING else args[2].type
    if FLOAT in (args[1].type, args[2].type):
        kind = FLOAT
    return expr(f"iif({', '.join(arg.sql for arg in args)})", kind, *args)


FUNCTIONS: dict[str, Function] = {
    # aggregates
    "count": _aggregate(_count, 0, 1),
    "sum": _aggregate(_sum),
    "avg": _aggregate(_avg),
    "min": _aggregate(lambda args: expr(f"min({args[0].sql})", args[0].type)),
    "max": _aggregate(lambda args: expr(f"max({args[0].sql})", args[0].type)),
    "any": _aggregate(lambda args: expr(f"min({args[0].sql})", args[0].type)),
    "uniq": _aggregate(lambda args: expr(f"count(DISTINCT {args[0].sql})", BIG)),
    "countif": _aggregate(lambda args: expr(f"count(*) FILTER (WHERE {args[0].sql})", BIG)),
    "sumif": _aggregate(_sum, 2),
    "avgif": _aggregate(_avg, 2),
    # conditions
    "if": Function(3, 3, _if),
    "coalesce": _plain("coalesce({0})", None, 2, 10),
    # numbers
    "intdiv": _plain("(CAST({1} AS INTEGER) / CAST({2} AS INTEGER))", SIGNED, 2),
    "abs": _plain("abs({0})", None),
    "floor": _plain("floor({0})", FLOAT),
    "ceil": _plain("ceil({0})", FLOAT),
    "round": _plain("round({0})", FLOAT, 1, 2),
    "sqrt": _plain("sqrt({0})", FLOAT),
    "log": _plain("ln({0})", FLOAT),
    "ln": _plain("ln({0})", FLOAT),
    "exp": _plain("exp({0})", FLOAT),
    "pow": _plain("pow({0})", FLOAT, 2),
    "least": _plain("min({0})", None, 2),
    "greatest": _plain("max({0})", None, 2),
    "touint8": _plain("(CAST({0} AS INTEGER) & 255)", FLAG),
    "touint32": _plain("(CAST({0} AS INTEGER) & 4294967295)", SMALL),
    "touint64": _plain("CAST({0} AS INTEGER)", BIG),
    "toint64": _plain("CAST({0} AS INTEGER)", SIGNED),
    "tofloat64": _plain("CAST({0} AS REAL)", FLOAT),
    # texts
    "tostring": _plain("CAST({0} AS TEXT)", STRING),
    "length": _plain("length(CAST({0} AS BLOB))", BIG),
    "empty": _plain("({0} = '')", FLAG),
    "notempty": _plain("({0} != '')", FLAG),
    "lower": _plain("lower({0})", STRING),
    "upper": _plain("upper({0})", STRING),
    "startswith": _plain("(substr({1}, 1, length({2})) = {2})", FLAG, 2),
    "endswith": _plain("(length({2}) = 0 OR substr({1}, -length({2})) = {2})", FLAG, 2),
    "position": _plain("instr({0})", BIG, 2),
    "substring": _plain("substr({0})", STRING, 2, 3),
    "concat": _plain("concat({0})", STRING, 1, 20),
    # times
    "now": Function(0, 0, lambda args: Expr("unixepoch('now')", TIME)),
    "today": Function(0, 0, lambda args: Expr("unixepoch('now', 'start of day')", TIME)),
    "todatetime": Function(1, 1, lambda args: as_time(args[0])._replace(type=TIME)),
    "tounixtimestamp": Function(1, 1, lambda args: as_time(args[0])._replace(type=SMALL)),
    "formatdatetime": Function(2, 2, _format_time),
    "tostartofinterval": Function(2, 2, _to_start_of_interval),
    "tostartofminute": _start(60),
    "tostartoffiveminutes": _start(300),
    "tostartoftenminutes": _start(600),
    "tostartoffifteenminutes": _start(900),
    "tostartofhour": _start(3_600),
    "tostartofday": _start(86_400),
    "tostartofweek": _start(604_800),
    "tostartofmonth": _start_of("month"),
    "tostartofyear": _start_of("year"),
    "toyear": _part("%Y"),
    "tomonth": _part("%m"),
    "todayofmonth": _part("%d"),
    "todayofweek": _part("%u"),
    "tohour": _part("%H"),
    "tominute": _part("%M"),
    "tosecond": _part("%S"),
    "toyyyymm": _part("%Y%m"),
}  # fmt: skip
# quantile…(level)(value) and quantile…Weighted(level)(value, _sample_interval)
QUANTILES = {"quantile", "quantileexact", "quantileweighted", "quantileexactweighted", "median"}


def call(name: str, args: list[Expr]) -> Expr:
    function = FUNCTIONS.get(name.lower())
    if function is None:
        raise QueryError(f"there is no function {name}()")
    if not function.least <= len(args) <= function.most:
        raise QueryError(f"{name}() was given {len(args)} arguments")
    return function.build(args)


def quantile(name: str, level: float, args: list[Expr]) -> Expr:
    is_weighted = name.lower().endswith("weighted")
    if len(args) != 1 + is_weighted or not 0 <= level <= 1:
        raise QueryError(f"{name}() takes a level from 0 to 1, and a column{' and a weight' if is_weighted else ''}")
    if is_weighted and args[1].sql != '"_sample_interval"':
        raise QueryError(f"the weight of {name}() can be _sample_interval only")  # it is 1 here
    if args[0].is_aggregate:
        raise QueryError("an aggregate is inside another one")
    way = "disc" if "exact" in name.lower() else "cont"
    return expr(f"percentile_{way}({args[0].sql}, {level!r})", FLOAT, args[0])._replace(is_aggregate=True)
