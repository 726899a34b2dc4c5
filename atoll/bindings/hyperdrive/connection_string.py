"""Connection strings of databases: postgres://user:password@host:port/database?sslmode=… and mysql://…"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from atoll.errors import InvalidArgument

PORTS = {"postgres": 5432, "postgresql": 5432, "mysql": 3306}
LOOPBACK = ("localhost", "127.0.0.1", "::1")
CHECKED, UNCHECKED = ("verify-full", "verify-ca"), ("require",)
MAX_LENGTH = 4096
# What `atoll dev` gets for a database without `localConnectionString`
NO_LOCAL_HOST = "local-connection-string.invalid"
NO_LOCAL = f"postgres://nobody@{NO_LOCAL_HOST}/none"
FORM = "write postgres://user:password@host:5432/database or mysql://user:password@host:3306/database"


class DatabaseAddress(NamedTuple):
    scheme: str  # postgresql or mysql
    host: str
    port: int
    user: str
    password: str
    database: str
    tls: bool
    is_checked: bool  # whether the server's certificate is checked

    @property
    def where(self) -> str:
        return f"{self.host}:{self.port}"


def read_address(text: str) -> DatabaseAddress:
    """InvalidArgument, without the password, if it is malformed."""
    if len(text) > MAX_LENGTH:
        raise InvalidArgument(f"the connection string is longer than {MAX_LENGTH} characters")
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise InvalidArgument(f"the connection string is malformed: {FORM}") from None
    database = unquote(parts.path.removeprefix("/"))
    if parts.scheme not in PORTS or not host or not parts.username or not database or port == 0:
        raise InvalidArgument(f"the connection string lacks a scheme, a user, a host or a database: {FORM}")
    is_mysql = parts.scheme == "mysql"
    wanted = parse_qs(parts.query).get("sslmode", [""])[-1]
    if wanted not in ("", "disable", *CHECKED, *UNCHECKED):
        raise InvalidArgument("`sslmode` is disable, require, verify-ca or verify-full")
    if is_mysql and wanted not in ("", "disable"):
        raise InvalidArgument("TLS to a MySQL server is not supported: leave `sslmode` out, and use a private network")
    is_plain = is_mysql or wanted == "disable" or (not wanted and host in LOOPBACK)
    return DatabaseAddress(
        "mysql" if is_mysql else "postgresql", host, port or PORTS[parts.scheme], unquote(parts.username),
        unquote(parts.password or ""), database, not is_plain, wanted not in UNCHECKED,
    )  # fmt: skip
