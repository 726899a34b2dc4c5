"""A real SMTP server for tests: aiosmtpd, which keeps what it receives."""

from __future__ import annotations

import ssl
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

from tests.running import free_port

PASSWORD = "correct horse"


class SmtpServer:
    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.messages: list[Envelope] = []
        self.logins: list[tuple[str, str]] = []
        self.was_tls: list[bool] = []
        self.port = free_port()
        options: dict[str, Any] = {"tls_context": tls, "require_starttls": True} if tls else {}
        self._controller = Controller(
            self, "127.0.0.1", self.port, authenticator=self.authenticate, auth_require_tls=False, **options
        )
        self._controller.start()

    def close(self) -> None:
        self._controller.stop()

    def authenticate(self, server: object, session: object, envelope: object, kind: str, data: object) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=data.password.decode() == PASSWORD)

    async def handle_RCPT(
        self, server: object, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address.startswith("nobody@"):
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: object, session: Session, envelope: Envelope) -> str:
        self.was_tls.append(session.ssl is not None)
        self.messages.append(envelope)
        return "250 OK"
