"""The address of a database: checked, and shown without its password."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from atoll.errors import StartError

SCHEMES = ("postgresql", "postgres")
HINT = "write postgresql://user:password@host:5432/database; special characters of the password as %40"


def is_postgres(store: str) -> bool:
    return store.split(":", 1)[0] in SCHEMES


def check_address(address: str) -> None:
    """Raises StartError, without the password."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise StartError("store is not a valid address of PostgreSQL", HINT, "store") from None
    if port == 0 or not parts.hostname or not parts.path.strip("/"):
        raise StartError("store must name the host and the database of PostgreSQL", HINT, "store")
    if any(name in ("password", "passfile") for name, _ in parse_qsl(parts.query)):
        raise StartError("store has a password after the question mark, where it would be shown", HINT, "store")


def shown_address(address: str) -> str:
    """Host, port and database: what may be logged."""
    parts = urlsplit(address)
    return f"{parts.hostname}:{parts.port or 5432}{parts.path}"
