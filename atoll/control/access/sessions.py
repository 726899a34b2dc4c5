"""Logins of the dashboard: a token is exchanged for a cookie, which scripts of pages cannot read.

    one-time code   `atoll dashboard` asks for one with its token; it is valid for a minute, and once
    session         a cookie of 256 random bits, stored as a hash; ends after HOURS, after IDLE without a request, with
                    its token, or by logging out

Nodes on one PostgreSQL share the sessions: one that ends on a node ends on all. A code is known only to the node that
made it.

A cookie comes with every request of a browser, also with those that another page causes. So a request that changes
something needs the header X-Atoll-CSRF too: an HMAC of the cookie, which only a page of this origin can ask for.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import apsw
import msgspec

from atoll.control.access.tokens import Token, Tokens
from atoll.db.sqlite import Database, rows
from atoll.errors import StorageFailed

COOKIE: Final = "__Host-atoll"
CSRF_HEADER: Final = "x-atoll-csrf"
LIFETIME: Final = 12 * 3_600_000  # ms
IDLE: Final = 3_600_000
USED_STEP: Final = 60_000  # the precision of the time of last use, in the table
MAX_SESSIONS: Final = 20  # of a token; a new one ends the oldest
CODE_MS: Final = 60_000
MAX_CODES: Final = 1_000
MAX_TEXT: Final = 100  # characters of a cookie or a code
SELECT: Final = "SELECT hash, token, created_at, used_at FROM sessions"
DELETE: Final = "DELETE FROM sessions WHERE hash = ?"


class BrowserSession(msgspec.Struct):
    token: str  # id of the token
    created_at: int  # ms since 1970
    used_at: int


class SessionRow(NamedTuple):
    hash: bytes
    token: str
    created_at: int
    used_at: int


class Sessions:
    """All sessions of the node, in memory and in the table, and the one-time codes, only in memory."""

    def __init__(self, database: Database, tokens: Tokens, clock: Callable[[], float]) -> None:
        self._database = database
        self._tokens = tokens
        self._clock = clock
        self._codes: dict[bytes, tuple[str, int]] = {}  # hash -> id of the token, when it ends
        self._sessions: dict[bytes, BrowserSession] = {}
        for row in database.read(lambda c: rows(c, SessionRow, f"{SELECT} ORDER BY created_at")):
            self._sessions[row.hash] = BrowserSession(row.token, row.created_at, row.used_at)
        self._sweep()

    def follow(self, keys: Iterable[object]) -> None:
        """Read sessions again that another node has begun, used or ended."""
        for key in keys:
            if isinstance(key, bytes):
                self._read(key)

    def _read(self, key: bytes) -> None:
        found = self._database.read(lambda c: rows(c, SessionRow, f"{SELECT} WHERE hash = ?", key))
        if not found:
            self._sessions.pop(key, None)
        for row in found:
            known = self._sessions.setdefault(key, BrowserSession(row.token, row.created_at, row.used_at))
            known.used_at = max(known.used_at, row.used_at)

    # One-time codes

    def make_code(self, token_id: str) -> str:
        now = self._now()
        self._codes = {key: (of, end) for key, (of, end) in self._codes.items() if end > now}
        if len(self._codes) >= MAX_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(32)
        self._codes[_hash(code)] = token_id, now + CODE_MS
        return code

    def take_code(self, code: str) -> Token | None:
        """The token that a code was made with. The code is used up."""
        token_id, end = self._codes.pop(_hash(code), ("", 0))
        return self._valid_token(token_id) if end > self._now() else None

    # Sessions

    async def begin(self, token: Token) -> str:
        """A new session of a token, and the text of its cookie. It never continues one that a browser brought."""
        self._sweep()
        mine = [key for key, session in self._sessions.items() if session.token == token.id]
        for key in mine[: max(0, len(mine) + 1 - MAX_SESSIONS)]:
            self._forget(key)
        text, now = secrets.token_urlsafe(32), self._now()
        key = _hash(text)
        self._sessions[key] = BrowserSession(token.id, now, now)
        sql = "INSERT INTO sessions (hash, token, created_at, used_at) VALUES (?, ?, ?, ?)"
        try:
            await self._write(sql, key, token.id, now, now)
        except StorageFailed:
            pass  # an operator may log in because the disk is full: the session lives in memory
        return text

    def find(self, text: str) -> Token | None:
        """The token of the session with this cookie; None if it has ended. Counts as a use of the session."""
        key = _hash(text)
        session = self._sessions.get(key)
        token = self._token_of(session)
        if session is None or token is None:
            self._forget(key)
            return None
        now = self._now()
        if now - session.used_at >= USED_STEP:
            session.used_at = now
            self._post("UPDATE sessions SET used_at = ? WHERE hash = ?", now, key)
        return token

    def is_valid(self, text: str) -> bool:
        return self._token_of(self._sessions.get(_hash(text))) is not None

    def ends_at(self, text: str) -> int:
        session = self._sessions.get(_hash(text))
        return 0 if session is None else session.created_at + LIFETIME

    async def end(self, text: str) -> None:
        """End a session, on every node. If the table cannot be written, it raises, and this node has forgotten it."""
        key = _hash(text)
        if text:
            self._sessions.pop(key, None)
            await self._write(DELETE, key)
            self._sessions.pop(key, None)  # another node's use of it may have been taken over meanwhile

    def _token_of(self, session: BrowserSession | None) -> Token | None:
        if session is None:
            return None
        now = self._now()
        is_over = now >= session.created_at + LIFETIME or now >= session.used_at + IDLE
        return None if is_over else self._valid_token(session.token)

    def _valid_token(self, token_id: str) -> Token | None:
        token = self._tokens.get(token_id)
        return token if token is not None and self._tokens.is_valid(token) else None

    def _sweep(self) -> None:
        for key in [key for key, session in self._sessions.items() if self._token_of(session) is None]:
            self._forget(key)

    def _forget(self, key: bytes) -> None:
        if self._sessions.pop(key, None) is not None:
            self._post(DELETE, key)

    def _post(self, sql: str, *values: bytes | str | int) -> None:
        self._database.post(lambda connection: _run(connection, sql, values))

    async def _write(self, sql: str, *values: bytes | str | int) -> None:
        await self._database.write(lambda connection: _run(connection, sql, values), anyway=True)

    def _now(self) -> int:
        return int(self._clock() * 1000)


def csrf_of(text: str) -> str:
    """The value of the header X-Atoll-CSRF for the session with this cookie."""
    return hmac.digest(text.encode(), b"atoll csrf", "sha256").hex()


def cookie_of(header: str) -> str:
    """The text of the session in a Cookie header; "" without one."""
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE and 0 < len(value) <= MAX_TEXT:
            return value
    return ""


def set_cookie(text: str) -> str:
    """The Set-Cookie header of a new session; with an empty text, of one that has ended."""
    age = LIFETIME // 1000 if text else 0
    return f"{COOKIE}={text}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={age}"


def _run(connection: apsw.Connection, sql: str, values: tuple[bytes | str | int, ...]) -> None:
    connection.execute(sql, values)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
