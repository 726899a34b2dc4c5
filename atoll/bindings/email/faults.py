"""Errors of email, with the codes of Cloudflare's Email Service."""

from __future__ import annotations

from atoll.bindings.base import Reply


class EmailFault(Exception):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code

    @property
    def reply(self) -> Reply:
        return Reply({"fault": {"code": self.code, "text": str(self)}})


def invalid(text: str) -> EmailFault:
    return EmailFault("E_VALIDATION_ERROR", text)
