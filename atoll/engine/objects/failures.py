"""Failures of calls to Durable Objects, in the words that workers know."""

from __future__ import annotations

from typing import Final

from atoll.errors import Failure, ObjectFailure
from atoll.wire.generated import ErrorCode

LOST_TEXT: Final = "Network connection lost."
UPDATED_TEXT: Final = "Durable Object reset because its code was updated."
OVERLOADED_TEXT: Final = "Durable Object is overloaded. Too many requests queued."
TOO_MUCH_TEXT: Final = "Durable Object is overloaded. Too much data queued."
QUEUED_TEXT: Final = "Durable Object is overloaded. Requests queued for too long."
STORAGE_SLOW_TEXT: Final = "Durable Object storage operation exceeded timeout which caused object to be reset."
TOO_LONG_TEXT: Final = (
    "A call to blockConcurrencyWhile() in a Durable Object waited for too long. The call was canceled and the Durable "
    "Object was reset."
)
MEMORY_TEXT: Final = "Durable Object's isolate exceeded its memory limit and was reset."
CPU_TEXT: Final = "Durable Object exceeded its CPU time limit and was reset."

NO_RETRY: Final = "\0no retry"  # after the reason of abort(…, {retryAlarm: false}); web/objects/live.js has it too

# The isolate or the engine is gone, or there is none: another try may succeed.
_CONNECTION: Final = frozenset(
    {ErrorCode.ENGINE_DIED, ErrorCode.UNLOADED, ErrorCode.UNAVAILABLE, ErrorCode.SHUTTING_DOWN}
)
_OVERLOAD: Final = frozenset({ErrorCode.OVERLOADED, ErrorCode.QUOTA_EXCEEDED, ErrorCode.CPU_QUOTA})


UNREADABLE: Final = ObjectFailure(ErrorCode.STORAGE, "Durable Object storage cannot be read.")
AWAY: Final = ObjectFailure(
    ErrorCode.STORAGE, "Durable Object storage cannot be reached at this moment.", is_retryable=True
)
ELSEWHERE: Final = ObjectFailure(
    ErrorCode.UNAVAILABLE, "Durable Object is on another node at this moment.", is_retryable=True
)
LOST: Final = ObjectFailure(ErrorCode.ENGINE_DIED, LOST_TEXT, is_retryable=True)
UPDATED: Final = ObjectFailure(ErrorCode.OBJECT_RESET, UPDATED_TEXT, is_reset=True)
OVERLOADED: Final = ObjectFailure(ErrorCode.OVERLOADED, OVERLOADED_TEXT, is_overloaded=True)
RESTORED: Final = ObjectFailure(
    ErrorCode.OBJECT_RESET, "Durable Object was reset because it was restored to another point in time.", is_reset=True
)
TOO_MUCH: Final = ObjectFailure(ErrorCode.OVERLOADED, TOO_MUCH_TEXT, is_overloaded=True)
QUEUED: Final = ObjectFailure(ErrorCode.OVERLOADED, QUEUED_TEXT, is_overloaded=True)
STORAGE_SLOW: Final = ObjectFailure(ErrorCode.STORAGE, STORAGE_SLOW_TEXT, is_reset=True, is_overloaded=True)
DELETED: Final = ObjectFailure(ErrorCode.OBJECT_RESET, "Durable Object was deleted by its owner.", is_reset=True)


def reset_failure(failure: Failure) -> ObjectFailure:
    """For all calls of an object that broke with this failure."""
    message = failure.message.removesuffix(NO_RETRY)
    return ObjectFailure(
        failure.code,
        message,
        failure.name,
        failure.stack,
        is_reset=True,
        is_overloaded=message == TOO_LONG_TEXT,
        is_final=message != failure.message,
    )


def told(failure: Failure) -> ObjectFailure:
    """A failure of one call, as its caller gets it."""
    if isinstance(failure, ObjectFailure):
        return failure
    if failure.code in _CONNECTION:
        return LOST
    if failure.code == ErrorCode.MEMORY:
        return ObjectFailure(ErrorCode.MEMORY, MEMORY_TEXT, is_reset=True)
    if failure.code == ErrorCode.CPU:
        return ObjectFailure(ErrorCode.CPU, CPU_TEXT, is_reset=True)
    if failure.code in _OVERLOAD:
        message = OVERLOADED_TEXT if failure.code == ErrorCode.OVERLOADED else failure.message
        return ObjectFailure(failure.code, message, is_overloaded=True)
    return ObjectFailure(
        failure.code,
        failure.message,
        failure.name,
        failure.stack,
        failure.file,
        failure.line,
        failure.column,
    )
