"""Reads expressions of a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from atoll.bindings.analytics_engine.sql.expressions import (
    BIG,
    FLAG,
    FLOAT,
    MAX_LENGTH,
    NOTHING,
    SIGNED,
    SMALL,
    STRING,
    Expr,
    added,
    compared,
    expr,
    interval,
    multiplied,
    text,
)  # fmt: skip
from atoll.bindings.analytics_engine.sql.functions import QUANTILES, call, quantile
from atoll.bindings.analytics_engine.sql.tokens import QueryError, SqlToken, tokens_of

T = TypeVar("T")

MAX_DEPTH = 60
# Words that end an expression, so that they are no names.
CLAUSES = {"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FORMAT", "UNION"}
RESERVED = CLAUSES | {"AND", "OR", "THEN", "WHEN", "ELSE", "END", "ASC", "DESC", "AS", "IN", "NOT", "LIKE", "ILIKE",
                      "BETWEEN", "IS"}  # fmt: skip


class ExpressionReader:
    def __init__(self, query: str) -> None:
        self._tokens = tokens_of(query)
        self._at = 0
        self._depth = 0
        self._scopes: list[tuple[dict[str, str], dict[str, Expr]]] = []  # columns and named results, innermost last

    # --- tokens ---

    @property
    def _next(self) -> SqlToken:
        return self._tokens[self._at]

    def _take(self) -> SqlToken:
        token = self._next
        self._at += token.kind != "end"
        return token

    def _word(self, *words: str) -> bool:
        """Take the words if they come next."""
        found = [token.word for token in self._tokens[self._at : self._at + len(words)]]
        if found != list(words):
            return False
        self._at += len(words)
        return True

    def _sign(self, *signs: str) -> str:
        if self._next.kind == "sign" and self._next.text in signs:
            return self._take().text
        return ""

    def _expect(self, sign: str) -> None:
        if not self._sign(sign):
            raise self._unexpected(f"`{sign}`")

    def _unexpected(self, wanted: str) -> QueryError:
        return QueryError(f"expected {wanted}, but found `{self._next.text[:40]}`")

    def _name(self, what: str) -> str:
        if self._next.kind == "quoted" or (self._next.kind == "name" and self._next.word not in RESERVED):
            return self._take().text
        raise self._unexpected(what)

    # --- expressions, from the loosest operators to the tightest ---

    def _deeper(self, parse: Callable[[], T]) -> T:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise QueryError("the query is nested too deeply")
        try:
            return parse()
        finally:
            self._depth -= 1

    def _expression(self) -> Expr:
        found = self._deeper(self._and)
        while self._word("OR"):
            right = self._deeper(self._and)
            found = expr(f"({found.sql} OR {right.sql})", FLAG, found, right)
        return found

    def _and(self) -> Expr:
        found = self._not()
        while self._word("AND"):
            right = self._not()
            found = expr(f"({found.sql} AND {right.sql})", FLAG, found, right)
        return found

    def _not(self) -> Expr:
        if self._word("NOT"):
            inner = self._deeper(self._not)
            return expr(f"(NOT {inner.sql})", FLAG, inner)
        return self._comparison()

    def _comparison(self) -> Expr:
        left = self._sum()
        while True:
            if sign := self._sign("=", "==", "!=", "<>", "<", "<=", ">", ">="):
                left = compared(left, sign, self._sum())
            elif self._word("IS", "NOT", "NULL"):
                left = expr(f"({left.sql} IS NOT NULL)", FLAG, left)
            elif self._word("IS", "NULL"):
                left = expr(f"({left.sql} IS NULL)", FLAG, left)
            else:
                start = self._at
                negated = "NOT " if self._word("NOT") else ""
                found = self._special(left, negated)
                if found is None:
                    self._at = start
                    return left
                left = found

    def _special(self, left: Expr, negated: str) -> Expr | None:
        """LIKE, IN and BETWEEN."""
        if self._word("LIKE") or self._word("ILIKE"):
            is_loose = self._tokens[self._at - 1].word == "ILIKE"
            right = self._sum()
            if is_loose:
                return expr(f"({negated}lower({left.sql}) LIKE lower({right.sql}))", FLAG, left, right)
            if right.literal is None or len(right.literal) > 200:
                raise QueryError("LIKE takes a pattern that is a text of up to 200 characters")
            glob = "".join({"%": "*", "_": "?", "*": "[*]", "?": "[?]", "[": "[[]"}.get(c, c) for c in right.literal)
            return expr(f"({negated}{left.sql} GLOB {text(glob).sql})", FLAG, left)
        if self._word("BETWEEN"):
            low = self._sum()
            if not self._word("AND"):
                raise self._unexpected("AND")
            above, below = compared(left, ">=", low), compared(left, "<=", self._sum())
            return expr(f"({negated}({above.sql} AND {below.sql}))", FLAG, above, below)
        if self._word("IN"):
            self._expect("(")
            values = self._arguments()
            if len(values) * len(left.sql) + sum(len(value.sql) for value in values) > MAX_LENGTH:
                raise QueryError("an expression is too long")
            same = [compared(left, "=", value).sql for value in values]
            return expr(f"({negated}({' OR '.join(same) or '0'}))", FLAG, left, *values)
        return None

    def _sum(self) -> Expr:
        found = self._product()
        while sign := self._sign("+", "-", "||"):
            right = self._product()
            if sign == "||":
                found = expr(f"concat({found.sql}, {right.sql})", STRING, found, right)
            else:
                found = added(found, sign, right)
        return found

    def _product(self) -> Expr:
        found = self._signed()
        while sign := self._sign("*", "/", "%"):
            found = multiplied(found, sign, self._signed())
        return found

    def _signed(self) -> Expr:
        if self._sign("-"):
            inner = self._deeper(self._signed)
            return multiplied(Expr("-1", SIGNED), "*", inner)
        return self._primary()

    def _primary(self) -> Expr:
        token = self._next
        if token.kind == "number":
            self._take()
            if not token.text.isdigit() or len(token.text) > 18:
                return Expr(repr(float(token.text)), FLOAT)
            return Expr(token.text, SMALL if int(token.text) < 1 << 32 else BIG)
        if token.kind == "text":
            self._take()
            return text(token.text)
        if self._sign("("):
            inner = self._deeper(self._expression)
            self._expect(")")
            return inner
        if self._word("NULL"):
            return Expr("NULL", NOTHING)
        if self._word("TRUE") or self._word("FALSE"):
            return Expr("1" if token.word == "TRUE" else "0", FLAG)
        if self._word("CASE"):
            return self._deeper(self._case)
        if token.word == "INTERVAL":
            self._take()
            if self._next.kind not in ("text", "number") or not self._next.text.isdigit() or len(self._next.text) > 9:
                raise self._unexpected("a number of units, such as INTERVAL '1' DAY")
            count = int(self._take().text)
            return interval(count, self._take().text.upper())
        name = self._name("an expression")
        if token.kind == "name" and self._sign("("):
            return self._deeper(lambda: self._call(name))
        return self._column(name)

    def _case(self) -> Expr:
        parts, type, sql = list[Expr](), NOTHING, "CASE"
        while self._word("WHEN"):
            condition = self._expression()
            if not self._word("THEN"):
                raise self._unexpected("THEN")
            value = self._expression()
            type = value.type if type == NOTHING else type
            parts += [condition, value]
            if len(sql) > MAX_LENGTH:
                raise QueryError("an expression is too long")
            sql += f" WHEN {condition.sql} THEN {value.sql}"
        if self._word("ELSE"):
            parts.append(self._expression())
            sql += f" ELSE {parts[-1].sql}"
            type = parts[-1].type if type == NOTHING else type
        if not parts or not self._word("END"):
            raise self._unexpected("WHEN, ELSE or END")
        return expr(f"({sql} END)", type, *parts)

    def _call(self, name: str) -> Expr:
        if name.lower() == "count":
            if self._sign("*"):
                self._expect(")")
                return call(name, [])
            if self._word("DISTINCT"):
                return call("uniq", self._arguments())
        if name.lower() in QUANTILES:
            return self._quantile(name)
        if name.lower() == "extract":
            raise QueryError("there is no function extract(): use toYear(), toMonth(), toHour() and the like")
        return call(name, self._arguments())

    def _quantile(self, name: str) -> Expr:
        level = 0.5
        if name.lower() != "median":
            if self._next.kind != "number":
                raise self._unexpected(f"a level, such as {name}(0.5)(double1)")
            level = float(self._take().text)
            self._expect(")")
            self._expect("(")
        return quantile(name, level, self._arguments())

    def _arguments(self) -> list[Expr]:
        """Up to the closing parenthesis."""
        found: list[Expr] = []
        if self._sign(")"):
            return found
        while True:
            found.append(self._expression())
            if not self._sign(","):
                self._expect(")")
                return found

    def _column(self, name: str) -> Expr:
        columns, named = self._scopes[-1] if self._scopes else ({}, {})
        if columns.get(name):
            return Expr(quoted(name), columns[name])
        if name in named:
            return named[name]
        raise QueryError(f"there is no column {name[:80]}")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
