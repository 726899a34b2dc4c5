"""Answers of workers of this node that are no plain responses."""

from __future__ import annotations

from atoll.bindings.base import Reply
from atoll.bindings.fetch.messages import WantedFetch
from atoll.bindings.services import InnerResponse
from atoll.errors import CalleeFailed, Failure, NetworkError, ObjectFailure
from atoll.wire.generated import ErrorCode


def thrown_by(failure: Failure) -> Reply:
    """Raise the failure of a worker behind a service binding in its caller: https://developers.cloudflare.com/workers/configuration/compatibility-flags/,
    "Dynamic Dispatch Exception Propagation". The exception is thrown again, without its stack."""
    if isinstance(failure, ObjectFailure):
        name = failure.name or "Error"
        return Reply({"thrown": {"name": name, "message": failure.message, "flags": failure.flags}, "ended": True})
    if failure.code != ErrorCode.EXCEPTION:
        raise CalleeFailed(failure)
    return Reply({"thrown": {"name": failure.name, "message": failure.message}, "ended": True})


def check_status(response: InnerResponse, wanted: WantedFetch) -> None:
    if not 200 <= response.status <= 599:
        raise NetworkError(f"{wanted.target} answered with the status {response.status}")
