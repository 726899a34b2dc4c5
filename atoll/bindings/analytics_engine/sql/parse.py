"""Translates a query: Cloudflare's dialect (a part of ClickHouse's) to SQLite's."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from atoll.bindings.analytics_engine.sql.expressions import FLOAT, SMALL, STRING, TIME, Expr
from atoll.bindings.analytics_engine.sql.reading import CLAUSES, RESERVED, ExpressionReader, quoted
from atoll.bindings.analytics_engine.sql.tokens import QueryError

MAX_ROWS = 10_000
MAX_SQL = 100_000  # characters for SQLite: a name stands for a whole expression, and may be used in every item
COLUMNS = {
    "dataset": STRING, "timestamp": TIME, "_sample_interval": SMALL, "index1": STRING,
    **{f"blob{n}": STRING for n in range(1, 21)}, **{f"double{n}": FLOAT for n in range(1, 21)},
}  # fmt: skip
TOO_LONG = "the query means too much SQL: an expression that has a name is repeated wherever the name is used"
FORMATS = {"JSON": "JSON", "JSONEACHROW": "JSONEachRow", "TABSEPARATED": "TabSeparated"}


class Translated(NamedTuple):
    """A query for SQLite: one statement that takes no values."""

    sql: str
    columns: list[tuple[str, str]]  # name and type
    format: str
    shows_tables: bool = False


class Selected(NamedTuple):
    sql: str
    columns: dict[str, str]


class QueryReader(ExpressionReader):
    def __init__(self, query: str, source: Callable[[str], str]) -> None:
        super().__init__(query)
        self._source = source  # the name of a dataset -> a query of its points

    def query(self) -> Translated:
        if self._word("SHOW", "TABLES"):
            return Translated("", [("dataset", STRING)], self._end(), shows_tables=True)
        selected = self._select(is_outer=True)
        return Translated(selected.sql, list(selected.columns.items()), self._end())

    def _end(self) -> str:
        made = "JSON"
        if self._word("FORMAT"):
            name = self._name("a format")
            if name.upper() not in FORMATS:
                raise QueryError(f"there is no format {name[:40]}: use {', '.join(FORMATS.values())}")
            made = FORMATS[name.upper()]
        self._sign(";")
        if self._next.kind != "end":
            raise self._unexpected("the end of the query")
        return made

    def _select(self, *, is_outer: bool = False) -> Selected:
        if not self._word("SELECT"):
            raise self._unexpected("SELECT")
        distinct = "DISTINCT " if self._word("DISTINCT") else ""
        items_at = self._at
        self._skip_items()  # the source comes after what is selected from it, but its columns are needed first
        items_end = self._at
        source, columns = self._from() if self._word("FROM") else ("", {})
        after, self._at = self._at, items_at
        items = self._items(columns)
        if self._at != items_end:
            raise self._unexpected("`,` or FROM")
        self._at = after
        named = dict(items)
        self._scopes.append((columns, named))
        where = f" WHERE {_no_aggregate(self._expression()).sql}" if self._word("WHERE") else ""
        self._scopes[-1] = ({**columns, **dict.fromkeys(named, "")}, named)  # names of results win from here on
        group = " GROUP BY " + ", ".join(self._keys()) if self._word("GROUP", "BY") else ""
        having = f" HAVING {self._expression().sql}" if self._word("HAVING") else ""
        order = " ORDER BY " + ", ".join(self._keys(ordered=True)) if self._word("ORDER", "BY") else ""
        limit = self._limit(is_outer)
        self._scopes.pop()
        if sum(len(item.sql) for _, item in items) + sum(map(len, (source, where, group, having, order))) > MAX_SQL:
            raise QueryError(TOO_LONG)
        shown = ", ".join(f"{_shown(item) if is_outer else item.sql} AS {quoted(name)}" for name, item in items)
        sql = f"SELECT {distinct}{shown}{f' FROM {source}' if source else ''}{where}{group}{having}{order}{limit}"
        return Selected(sql, {name: item.type for name, item in items})

    def _skip_items(self) -> None:
        open_ = 0
        while self._next.kind != "end":
            sign = self._next.text if self._next.kind == "sign" else ""
            if open_ == 0 and (self._next.word in CLAUSES or sign in (";", ")")):
                return
            open_ += (sign == "(") - (sign == ")")
            self._take()

    def _from(self) -> tuple[str, dict[str, str]]:
        if self._sign("("):
            inner = self._deeper(self._select)
            self._expect(")")
            if self._names_it():
                self._name("a name")
            return f"({inner.sql})", inner.columns
        name = self._name("a dataset")
        while self._sign("-"):  # names of datasets may have dashes
            name += "-" + self._take().text
        return f"({self._source(name)})", COLUMNS

    def _names_it(self) -> bool:
        """Take AS, if it is there, and tell whether a name follows."""
        is_name = self._next.kind == "quoted" or (self._next.kind == "name" and self._next.word not in RESERVED)
        return self._word("AS") or is_name

    def _items(self, columns: dict[str, str]) -> list[tuple[str, Expr]]:
        items: list[tuple[str, Expr]] = []
        named: dict[str, Expr] = {}
        size = 0
        self._scopes.append((columns, named))
        while True:
            if self._sign("*"):
                items += [(name, Expr(quoted(name), type)) for name, type in columns.items()]
            else:
                start = self._at
                item = self._expression()
                name = "".join(token.text for token in self._tokens[start : self._at])[:200]
                if self._names_it():
                    name = self._name("a name")
                named[name] = item
                items.append((name, item))
            size += len(items[-1][1].sql)
            if size > MAX_SQL:
                raise QueryError(TOO_LONG)
            if not self._sign(","):
                break
        self._scopes.pop()
        if len({name for name, _ in items}) < len(items):
            raise QueryError("two results have the same name")
        return items

    def _keys(self, *, ordered: bool = False) -> list[str]:
        keys, size = list[str](), 0
        while True:
            key = self._expression()
            way = ""
            if ordered and not self._word("ASC"):
                way = " DESC" if self._word("DESC") else ""
            keys.append(key.sql + way)  # a number is that of a column, for ClickHouse and SQLite
            size += len(key.sql)
            if size > MAX_SQL:
                raise QueryError(TOO_LONG)
            if not self._sign(","):
                return keys

    def _limit(self, is_outer: bool) -> str:
        most = MAX_ROWS + 1
        count = most
        if self._word("LIMIT") and not self._word("ALL"):
            count = self._integer()
            if self._sign(","):
                first, count = count, self._integer()
                return f" LIMIT {min(count, most)} OFFSET {first}"
        elif not is_outer:
            return ""
        first = self._integer() if self._word("OFFSET") else 0
        return f" LIMIT {min(count, most) if is_outer else count} OFFSET {first}"

    def _integer(self) -> int:
        if self._next.kind != "number" or not self._next.text.isdigit() or len(self._next.text) > 15:
            raise self._unexpected("a whole number")
        return int(self._take().text)


def _no_aggregate(found: Expr) -> Expr:
    if found.is_aggregate:
        raise QueryError("WHERE has an aggregate: use HAVING")
    return found


def _shown(item: Expr) -> str:
    return f"datetime({item.sql}, 'unixepoch')" if item.type == TIME else item.sql
