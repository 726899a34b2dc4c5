"""A node with an SMTP server behind it, routes for two tenants, and a listener."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.bindings.email.smtp_server import SmtpServer
from tests.running import Atoll, free_port

ROUTES = "@acme.example=default/inbox,boss@acme.example=globex/,@globex.example=globex/inbox"


class MailNode(Atoll):
    smtp: SmtpServer
    listen: int

    def acts(self, name: str, act: str, **fields: object) -> dict[str, object]:
        """Have the worker that takes code run it; what it returns."""
        answer = self.post(name, "/", json.dumps({"act": act, **fields}))
        assert answer.status == 200, answer.text
        found = answer.json
        assert isinstance(found, dict)
        return found


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MailNode]:
    smtp, listen = SmtpServer(), free_port()
    node = MailNode(
        tmp_path_factory.mktemp("email"), engines=1, smtp_server=f"smtp://127.0.0.1:{smtp.port}",
        email_routes=ROUTES, email_listen=f"127.0.0.1:{listen}", email_bytes=1 << 20,
    )  # fmt: skip
    node.smtp, node.listen = smtp, listen
    node.start()
    yield node
    assert node.stop() == 0
    smtp.close()
