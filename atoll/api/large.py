"""JSON bodies of megabytes: a job process checks them, and the event loop only carries their values on.

A body has two shapes: the strict one says what its values must be, and the loose one has `msgspec.Raw` in their places.
Decoding into the loose one skips the values, which takes a few milliseconds for the largest body.
"""

from __future__ import annotations

import importlib
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request

from atoll.api.bodies import SMALL_BODY, receive_body, receive_json, unwatched
from atoll.api.refusals import Refused, bad_body
from atoll.api.work import offloaded
from atoll.offload.jobs import Buffer, Job

T = TypeVar("T")

CHECK: Final = Job("atoll.api.large:check_job", seconds=20)
MOST_WORDS: Final = 2_000  # characters of what is wrong


async def read_large(request: Request, strict: type[Any], loose: type[T], limit: int, *, declared: bool = True) -> T:
    """A body of at most `limit` bytes that fits both shapes. `declared`: it must be declared as JSON."""
    with await (receive_json if declared else receive_body)(request, limit) as body:
        if body.is_small and body.size <= SMALL_BODY:
            raw = body.data
            wrong = fault_of(raw, strict)
        else:
            shape = f"{strict.__module__}:{strict.__qualname__}"
            with await offloaded(request, CHECK, body.data if body.is_small else body, {"shape": shape}) as result:
                wrong = (await result.read()).decode("utf-8", "replace")
            raw = b"" if wrong else await body.read()
        if wrong:
            raise no_fit(wrong)
        return msgspec.json.decode(raw, type=loose)


def no_fit(wrong: str) -> Refused:
    text = wrong.replace("Object contains", "the body has", 1)
    return bad_body(f"the body does not fit: {text}", "see docs/reference/api.md")


def fault_of(raw: Buffer, shape: type[Any]) -> str:
    """Why a body does not fit a shape; "" if it does."""
    try:
        with unwatched(len(raw)):
            msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return str(error)[:MOST_WORDS] or type(error).__name__
    return ""


def check_job(data: Buffer, args: dict[str, Any]) -> bytes:
    """In a job process."""
    module, _, name = args["shape"].partition(":")
    return fault_of(data[:], getattr(importlib.import_module(module), name)).encode("utf-8", "replace")
