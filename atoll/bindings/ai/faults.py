"""Errors of env.AI with the numbers of Workers AI: https://developers.cloudflare.com/workers-ai/platform/errors/.

A worker gets them as InferenceUpstreamError. They never contain an answer of the server about its key.
"""

from __future__ import annotations

import msgspec

from atoll.bindings.base import Reply

MAX_WORDS = 1_000
NO_SERVER = (
    "this node has no AI server. An operator names one with the setting `ai_endpoint`; see docs/bindings/ai.md of Atoll"
)


class AiFault(Exception):
    def __init__(self, code: int, text: str, status: int) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.status = status

    @property
    def reply(self) -> Reply:
        return Reply({"fault": {"code": self.code, "text": self.text, "status": self.status}})


def no_model(name: str) -> AiFault:
    return AiFault(5007, f"No such model {name[:200]} or task", 400)


class _Error(msgspec.Struct):
    message: str = ""


class _ErrorAnswer(msgspec.Struct):
    error: _Error | str | None = None
    message: str = ""
    detail: object = None


def fault_of(model: str, status: int, body: bytes) -> AiFault:
    """What an answer of the server that is no success means to a worker."""
    if status == 404:
        return no_model(model)
    if status == 408:
        return AiFault(3007, "Request timeout", 408)
    if status == 413:
        return AiFault(3006, "Request is too large", 413)
    if status in (429, 503):
        return AiFault(3040, "Capacity temporarily exceeded, please try again.", 429)
    if 400 <= status < 500 and status not in (401, 402, 403, 407):
        return AiFault(5006, f"Error: {_words(body) or 'the server refuses the input'}", 400)
    if status < 500:
        return AiFault(3043, "the AI server refuses this node: the operator must check its settings", 500)
    return AiFault(3043, "Internal server error", 500)


def _words(body: bytes) -> str:
    try:
        found = msgspec.json.decode(body, type=_ErrorAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    error = found.error.message if isinstance(found.error, _Error) else found.error
    text = error or found.message or (found.detail if isinstance(found.detail, str) else "")
    return "".join(c if c.isprintable() else " " for c in text[:MAX_WORDS])
