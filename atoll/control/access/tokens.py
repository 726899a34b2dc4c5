"""Tokens authenticate programs. A token is shown once, stored as a hash, and ends when it is revoked or expires.

    atoll_<id>_<secret>      the id finds the row, the SHA-256 of the whole is compared in constant time

The secret has 256 random bits, which cannot be guessed. So a plain hash is enough, and a login costs microseconds.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import apsw
import msgspec

from atoll.api.audit import Mark
from atoll.api.callers import Scope
from atoll.api.refusals import ApiCode, Refused
from atoll.control.ids import random_letters
from atoll.control.index import Index, sorted_after
from atoll.db.sqlite import Database, rows

PREFIX = "atoll"
PLACE_DIGITS = 15
MAX_TOKENS = 1_000  # of one tenant: all of them are in memory
SELECT = "SELECT id, hash, name, tenant, scopes, created_at, expires_at, used_at FROM tokens"
USED_STEP = 60_000  # ms: the precision of the time of last use


class Token(msgspec.Struct, frozen=True):
    """The facts about a token, without its text. Times are ms since 1970."""

    id: str
    name: str
    tenant: str | None  # None: all tenants
    scopes: tuple[Scope, ...]
    created_at: int
    expires_at: int | None = None


class TokenRow(NamedTuple):
    id: str
    hash: bytes
    name: str
    tenant: str | None
    scopes: str
    created_at: int
    expires_at: int | None
    used_at: int | None


class Tokens:
    """All tokens of the node, in memory and in the table."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._tokens: dict[str, Token] = {}
        self._hashes: dict[str, bytes] = {}
        self._used: dict[str, int] = {}
        self.places = Index()  # by tenant, oldest first
        for row in database.read(lambda connection: rows(connection, TokenRow, SELECT)):
            self._know(row)

    def follow(self, ids: Iterable[str]) -> None:
        """Read tokens again that another node has made, used or revoked."""
        for token_id in ids:
            sql, used = f"{SELECT} WHERE id = ?", self._used.get(token_id, 0)
            found = self._database.read(lambda c, id=token_id, sql=sql: rows(c, TokenRow, sql, id))  # type: ignore[misc]
            self._forget(token_id)
            for row in found:
                self._know(row._replace(used_at=max(row.used_at or 0, used) or None))

    def _know(self, row: TokenRow) -> None:
        scopes = msgspec.json.decode(row.scopes, type=tuple[Scope, ...])
        self._tokens[row.id] = Token(row.id, row.name, row.tenant, scopes, row.created_at, row.expires_at)
        self._hashes[row.id] = row.hash
        self.places.add(row.tenant, place_of(self._tokens[row.id]))
        if row.used_at is not None:
            self._used[row.id] = row.used_at

    def after(self, tenant: str | None, place: str) -> Iterator[Token]:
        """The tokens of a tenant, or all, oldest first, starting after a position."""
        for following in sorted_after(self.places.under(tenant), place):
            yield self._tokens[following[PLACE_DIGITS + 1 :]]

    def used_at(self, token: Token) -> int | None:
        return self._used.get(token.id)

    def check(self, shown: str) -> Token | None:
        """The token of a text that a client sent; None if it is not valid."""
        token_id = _id_of(shown)
        token = self._tokens.get(token_id)
        if token is None or not hmac.compare_digest(_hash(shown), self._hashes[token_id]):
            return None
        if not self.is_valid(token):
            return None
        now = int(self._clock() * 1000)
        if now - self._used.get(token_id, 0) >= USED_STEP:
            self._used[token_id] = now
            self._database.post(
                lambda connection: _run(connection, "UPDATE tokens SET used_at = ? WHERE id = ?", now, token_id)
            )
        return token

    def is_valid(self, token: Token) -> bool:
        """Whether a token is neither revoked nor expired."""
        return token.id in self._tokens and (token.expires_at is None or token.expires_at > self._clock() * 1000)

    def get(self, token_id: str) -> Token | None:
        return self._tokens.get(token_id)

    async def make(
        self, name: str, scopes: Sequence[Scope], tenant: str | None, expires_at: int | None, mark: Mark
    ) -> tuple[Token, str]:
        """A new token and its text, which cannot be shown again."""
        text = new_text()
        return await self.keep(text, name, scopes, tenant, expires_at, mark), text

    async def keep(
        self, text: str, name: str, scopes: Sequence[Scope], tenant: str | None, expires_at: int | None, mark: Mark
    ) -> Token:
        """Make a token from a text of `new_text`."""
        if tenant is not None and len(self.places.under(tenant)) >= MAX_TOKENS:
            raise Refused(
                ApiCode.QUOTA, f"the tenant `{tenant}` has reached the limit of {MAX_TOKENS:,} tokens", "revoke some"
            )
        token_id = _id_of(text)
        token = Token(token_id, name, tenant, tuple(scopes), mark.at, expires_at)

        def act(connection: apsw.Connection) -> None:
            if tenant is not None and not rows(connection, str, "SELECT name FROM tenants WHERE name = ?", tenant):
                raise Refused(
                    ApiCode.NO_TENANT, f"the tenant `{tenant}` does not exist any more", "it was deleted just now"
                )
            connection.execute(
                "INSERT INTO tokens (id, hash, name, tenant, scopes, created_at, expires_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (token.id, _hash(text), name, tenant, _json(token.scopes), token.created_at, expires_at),
            )
            mark.write(connection, "token.create", token.id, name)

        await self._database.write(act)
        self._tokens[token_id] = token
        self._hashes[token_id] = _hash(text)
        self.places.add(tenant, place_of(token))
        return token

    def find(self, token_id: str, tenant: str | None) -> Token:
        """A token by its id, of one tenant or of any."""
        token = self._tokens.get(token_id)
        if token is None or (tenant is not None and token.tenant != tenant):
            raise Refused(ApiCode.NOT_FOUND, f"there is no token `{token_id[:80]}`", "GET /api/tokens lists the tokens")
        return token

    async def revoke(self, token: Token, mark: Mark) -> None:
        """Revoke a token, at once."""
        self._forget(token.id)  # memory first: if the write fails, the token works again after a restart and not before

        def act(connection: apsw.Connection) -> None:
            _run(connection, "DELETE FROM tokens WHERE id = ?", token.id)
            mark.write(connection, "token.revoke", token.id, token.name)

        await self._database.write(act, anyway=True)  # another node may just have noted that it was used
        self._forget(token.id)  # for that reason it may have been read again meanwhile

    def forget_tenant(self, tenant: str) -> None:
        """Forget the tokens of a deleted tenant."""
        for token in list(self.after(tenant, "")):
            self._forget(token.id)

    def _forget(self, token_id: str) -> None:
        token = self._tokens.pop(token_id, None)
        if token is not None:
            self.places.drop(token.tenant, place_of(token))
        self._hashes.pop(token_id, None)
        self._used.pop(token_id, None)

    def has_operator(self) -> bool:
        """Whether a valid token exists that can make others."""
        now = self._clock() * 1000
        return any(
            token.tenant is None
            and Scope.ADMIN in token.scopes
            and (token.expires_at is None or token.expires_at > now)
            for token in self._tokens.values()
        )


def place_of(token: Token) -> str:
    """The position of a token among others, as text that sorts by age."""
    return f"{token.created_at:0{PLACE_DIGITS}d}-{token.id}"


def new_text() -> str:
    return f"{PREFIX}_{random_letters()}_{secrets.token_urlsafe(32)}"


def _id_of(text: str) -> str:
    return text.removeprefix(f"{PREFIX}_").split("_", 1)[0]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _run(connection: apsw.Connection, sql: str, *values: str | int) -> None:
    connection.execute(sql, values)
