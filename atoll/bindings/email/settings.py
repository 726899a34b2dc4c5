"""Which server sends email, which addresses belong to which tenant and worker, and where the node listens."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from atoll.bindings.email.addresses import is_address
from atoll.config import Settings
from atoll.errors import StartError

USER_VARIABLE, PASSWORD_VARIABLE = "SMTP_USER", "SMTP_PASSWORD"
EVERY = "*"
DEFAULT_TENANT = "default"


class SmtpServer(NamedTuple):
    host: str
    port: int
    is_tls: bool  # from the first byte; else by STARTTLS
    user: str = ""
    password: str = ""

    @property
    def needs_tls(self) -> bool:
        """Whether STARTTLS is required: a password must not cross a network in the clear."""
        return bool(self.user) and not self.is_tls and not _is_loopback(self.host)

    def __repr__(self) -> str:
        return f"{self.host}:{self.port}"


class EmailRoute(NamedTuple):
    tenant: str
    worker: str  # "" if the tenant may send from the address, and nothing is received


class EmailSettings(NamedTuple):
    server: SmtpServer | None = None
    routes: Mapping[str, EmailRoute] = {}  # by address, @domain or *, in lower case
    listen: tuple[str, int] | None = None
    max_bytes: int = 25 << 20
    host: str = "localhost"  # the name under which the node speaks SMTP

    def route(self, address: str) -> EmailRoute | None:
        """The most specific route of an address."""
        address = address.lower()
        domain = address[address.rfind("@") :]
        return self.routes.get(address) or self.routes.get(domain) or self.routes.get(EVERY)

    def owns(self, tenant: str, address: str) -> bool:
        """Whether a tenant may send from an address."""
        found = self.route(address)
        return found is not None and found.tenant == tenant


def read_email(settings: Settings, environment: Mapping[str, str] = os.environ) -> EmailSettings:
    """StartError if a setting is wrong."""
    return EmailSettings(
        _server(settings, environment),
        dict(_route(text) for text in settings.value("email_routes")),
        _listen(str(settings.value("email_listen"))),
        int(settings.value("email_bytes")),
        settings.base_domain,
    )


def _server(settings: Settings, environment: Mapping[str, str]) -> SmtpServer | None:
    text = str(settings.value("smtp_server"))
    if not text:
        return None
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in ("smtp", "smtps") or not host or parts.username or parts.path not in ("", "/"):
        raise StartError(
            f"smtp_server is {text!r}, which is not the address of a server",
            "write smtp://mail.example:587 or smtps://mail.example:465",
            "smtp_server",
        )
    is_tls = parts.scheme == "smtps"
    user, password = _credentials(str(settings.value("smtp_credentials")), environment)
    return SmtpServer(host, port or (465 if is_tls else 587), is_tls, user, password)


def _credentials(file: str, environment: Mapping[str, str]) -> tuple[str, str]:
    if not file:
        return environment.get(USER_VARIABLE, ""), environment.get(PASSWORD_VARIABLE, "")
    try:
        user, mark, password = Path(file).expanduser().read_text().strip().partition(":")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise StartError(
            f"the password of the SMTP server cannot be read: {file}: {reason}",
            "check the path and its permissions",
            "smtp_credentials",
        ) from None
    if not (user and mark and password) or "\n" in password:
        raise StartError(f"{file} is not one line USER:PASSWORD", "write both into it", "smtp_credentials")
    return user, password


def _route(text: str) -> tuple[str, EmailRoute]:
    pattern, mark, target = (part.strip() for part in text.partition("="))
    tenant, slash, worker = target.partition("/")
    if not slash:
        tenant, worker = DEFAULT_TENANT, target
    known = pattern == EVERY or is_address(pattern) or is_address(f"x{pattern}")
    if not (mark and known and tenant and (worker or slash)):
        raise StartError(
            f"email_routes has {text!r}, which is not ADDRESS=TENANT/WORKER",
            'write ["inbox@example.com=acme/inbox", "@example.com=acme/"]; `acme/` alone only sends',
            "email_routes",
        )
    return pattern.lower(), EmailRoute(tenant, worker)


def _listen(text: str) -> tuple[str, int] | None:
    if not text:
        return None
    host, mark, port = text.rpartition(":")
    if not (mark and host and port.isascii() and port.isdigit() and int(port) <= 65_535):
        raise StartError(f"email_listen is {text!r}, not HOST:PORT", "write 127.0.0.1:2525", "email_listen")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
