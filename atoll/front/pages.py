"""Error pages for requests that no worker answered: one per failure, as HTML, JSON or plain text by Accept.

How much a page says depends on the node. Every page has the code, its meaning, and the limit that was reached. Messages
that the worker's code threw may hold internals, so only nodes on localhost show them; other pages point to the logs.
Stacks and internal errors of Atoll are shown in development only. Texts from outside are escaped.
"""

from __future__ import annotations

import html
import json
import re
from enum import IntEnum
from http import HTTPStatus
from typing import NamedTuple

from atoll.errors import Failure
from atoll.front.http1 import CLOSE, response_bytes
from atoll.wire.generated import ErrorCode

MAX_MESSAGE = 2000
MAX_STACK = 8000

TITLES: dict[ErrorCode, str] = {
    ErrorCode.INTERNAL: "Something broke inside Atoll",
    ErrorCode.EXCEPTION: "The worker threw an exception",
    ErrorCode.NOT_A_RESPONSE: "The worker did not return a Response",
    ErrorCode.NEVER_RESPONDS: "The worker would never have responded",
    ErrorCode.NO_DEFAULT: "The worker has no default export",
    ErrorCode.NO_FETCH: "The worker has no fetch handler",
    ErrorCode.FETCH_NOT_FUNCTION: "The fetch handler of the worker is not a function",
    ErrorCode.COMPILE: "The worker's code does not compile",
    ErrorCode.STARTUP: "The worker failed while starting",
    ErrorCode.CPU: "The worker used too much CPU time",
    ErrorCode.MEMORY: "The worker used too much memory",
    ErrorCode.WALL: "The worker took too long",
    ErrorCode.ENGINE_DIED: "The engine stopped while the worker ran",
    ErrorCode.OVERLOADED: "The worker has too many requests waiting",
    ErrorCode.UNAVAILABLE: "No engine is ready",
    ErrorCode.UNKNOWN_HOST: "No worker answers here",
    ErrorCode.UNLOADED: "The worker was being replaced",
    ErrorCode.CPU_QUOTA: "The CPU time of this minute is used up",
    ErrorCode.QUOTA_EXCEEDED: "Too many requests at once",
    ErrorCode.SHUTTING_DOWN: "This node is shutting down",
    ErrorCode.BLOCKED: "The worker is blocked",
}

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{status} · {title}</title>
<style>
  :root {{ --ink: #16212b; --soft: #5b6b78; --paper: #f6f8f9; --card: #fff; --line: #dde4e8; --mark: #0b7285 }}
  @media (prefers-color-scheme: dark) {{
    :root {{ --ink: #e6edf1; --soft: #93a4b0; --paper: #0e1519; --card: #161f25; --line: #26333b; --mark: #4dc4d6 }}
  }}
  body {{ margin: 0; padding: 12vh 1.25rem 3rem; background: var(--paper); color: var(--ink);
         font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif }}
  main {{ max-width: 42rem; margin: auto }}
  small {{ color: var(--mark); font-weight: 600; letter-spacing: .04em }}
  h1 {{ font-size: 1.6rem; line-height: 1.25; margin: .35rem 0 .75rem }}
  p {{ color: var(--soft); margin: .5rem 0 }}
  pre {{ background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .85rem 1rem;
        overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; font: 13.5px/1.5 ui-monospace, monospace }}
  pre b {{ color: #c92a2a }}
  @media (prefers-color-scheme: dark) {{ pre b {{ color: #ff8787 }} }}
</style>
<main>
  <small>ERROR {code} · HTTP {status}</small>
  <h1>{title}</h1>
  {details}
</main>
"""


# Reloads a developer's page after the next build. `atoll dev` answers at that path.
RELOAD = '<script>new EventSource("/cdn-cgi/atoll/events").onmessage = () => location.reload()</script>'


GOES_AWAY = "This page goes away when the error is fixed."
MARKED = re.compile(r"  &gt; +\d+ \||     +\| +\^")  # the marked line of a code frame, and the caret below it


class Detail(IntEnum):
    """How much an error page says."""

    PUBLIC = 0  # nothing from the worker's code
    MESSAGES = 1  # messages of its exceptions
    STACKS = 2  # and stacks, and internal errors of Atoll


# Failures whose message comes from the worker's code.
OWN_WORDS = frozenset(
    {ErrorCode.EXCEPTION, ErrorCode.STREAM, ErrorCode.STARTUP, ErrorCode.COMPILE, ErrorCode.NOT_A_RESPONSE}
)


class ErrorPage(NamedTuple):
    status: int
    block: bytes
    body: bytes


def error_page(failure: Failure, accept: bytes, detail: Detail) -> ErrorPage:
    """The response to a request whose call failed."""
    facts = failure.facts
    title = TITLES.get(failure.code, facts.meaning.rstrip("."))
    message, hint = explained(failure, detail)
    stack = failure.stack[:MAX_STACK] if detail == Detail.STACKS else ""
    after = RELOAD if detail == Detail.STACKS else ""
    kind, body = rendered(accept, facts.status, facts.page, title, message, hint, stack, failure.code.name, after)
    block = b"content-type: %b\r\nx-atoll-error: %d\r\ncache-control: no-store\r\n" % (kind, facts.page)
    if facts.status in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS):
        block += b"retry-after: %d\r\n" % failure.retry_after
    return ErrorPage(facts.status, block, body)


def explained(failure: Failure, detail: Detail) -> tuple[str, str]:
    """The message, and a hint what to do."""
    if failure.code == ErrorCode.UNKNOWN_HOST:
        return (
            f"No worker is deployed for the host {failure.message} and this path.",
            "Deploy a worker (POST /api/workers on the control host): it answers on <name>.<base domain>. "
            "Or add a route that matches this address to a worker.",
        )
    if failure.code == ErrorCode.INTERNAL and detail < Detail.STACKS:
        return failure.facts.meaning, ""
    if failure.code in OWN_WORDS and detail < Detail.MESSAGES:
        return failure.facts.meaning, "See the worker's logs for details."
    message = failure.message[:MAX_MESSAGE]
    if failure.name and not message.startswith(failure.name):
        message = f"{failure.name}: {message}"
    if failure.file and detail == Detail.STACKS and not failure.stack:
        message += f"\n    at {failure.file}:{failure.line}:{failure.column}"
    return message or failure.facts.meaning, ""


def framed(text: str) -> str:
    """A text as HTML, with the marked line of a code frame highlighted."""
    lines = [f"<b>{line}</b>" if MARKED.match(line) else line for line in html.escape(text, quote=False).split("\n")]
    return "<pre>" + "\n".join(lines) + "</pre>"


def rendered(
    accept: bytes, status: int, code: int, title: str, message: str, hint: str, stack: str, name: str, after: str = ""
) -> tuple[bytes, bytes]:
    wishes = accept.lower()
    if b"text/html" in wishes:
        details = [framed(message)]
        if hint:
            details.append(f"<p>{html.escape(hint)}</p>")
        if stack:
            details.append(framed(stack))
        if after:
            details += [f"<p>{GOES_AWAY}</p>", after]
        page = PAGE.format(status=status, code=code, title=html.escape(title), details="\n  ".join(details))
        return b"text/html; charset=utf-8", page.encode("utf-8", "replace")
    if b"json" in wishes:
        error: dict[str, str | int] = {"code": code, "name": name, "title": title, "message": message}
        if hint:
            error["hint"] = hint
        if stack:
            error["stack"] = stack
        return b"application/json", json.dumps({"error": error}).encode() + b"\n"
    lines = [f"error {code}: {title}", message, hint, stack]
    return b"text/plain; charset=utf-8", ("\n".join(filter(None, lines)) + "\n").encode("utf-8", "replace")


def refusal_bytes(status: int, reason: str, date: bytes) -> bytes:
    """The response to an invalid or refused request. It is always the last on its connection."""
    body = f"{status} {HTTPStatus(status).phrase}: {reason}\n".encode("utf-8", "replace")
    return response_bytes(status, b"content-type: text/plain; charset=utf-8\r\n", body, date, CLOSE)
