"""Every error Atoll raises on purpose.

    AtollError
    ├── InvalidArgument     the worker passed something the API does not take
    ├── NotGranted          the worker named a binding it was not given
    ├── QuotaExceeded       a limit on what a worker may ask for was reached
    ├── LoopDetected        workers called each other in too long a chain
    ├── HostRefused         a worker may not reach this host or port
    ├── AddressRefused      a worker may not reach this address
    ├── NetworkError        another server could not be reached, or answered with something that is no HTTP
    ├── CalleeFailed        a worker that was called by another one failed
    ├── BindingRefused      a binding does not do what the worker asked of it
    ├── StorageFailed       a disk is full, cannot be written to or holds damaged data
    ├── LoadFailed          a version does not compile, start or export a handler
    ├── EngineError         an engine broke the wire, died or does not fit this Atoll
    ├── StartError          the node cannot start: port taken, bad setting, missing file
    └── Refused             the control API refuses a request (in control/refusals.py, with codes of its own)

`code` is permanent: clients and tests match on it, never on the text. Anything that is not an AtollError is a bug
of ours: it is logged whole and the worker or client only learns INTERNAL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from atoll.wire.generated import ERRORS, ErrorCode, ErrorFacts


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call or a load failed, as the engine or Python tells it: the data behind an error page and a log record."""

    code: ErrorCode
    message: str
    name: str = ""
    stack: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    retry_after: int = 1  # seconds; told with a 503

    @property
    def facts(self) -> ErrorFacts:
        return ERRORS[self.code]


class AtollError(Exception):
    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL


class InvalidArgument(AtollError):
    code = ErrorCode.INVALID_ARGUMENT


class NotGranted(AtollError):
    code = ErrorCode.NOT_GRANTED


class QuotaExceeded(AtollError):
    code = ErrorCode.QUOTA_EXCEEDED


class LoopDetected(AtollError):
    code = ErrorCode.LOOP


class HostRefused(AtollError):
    code = ErrorCode.EGRESS_HOST


class AddressRefused(AtollError):
    code = ErrorCode.EGRESS_ADDRESS


class NetworkError(AtollError):
    code = ErrorCode.NETWORK


class CalleeFailed(AtollError):
    """A worker was called from inside the node and did not answer well; `failure` says how."""

    code = ErrorCode.NETWORK

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class BindingRefused(AtollError):
    code = ErrorCode.BINDING


class StorageFailed(AtollError):
    """`path` is the file at fault: for the operator, never for a worker."""

    code = ErrorCode.STORAGE

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class LoadFailed(AtollError):
    """A version could not be loaded; `failure` says where and why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class EngineError(AtollError):
    """An engine sent what no engine may send, died, or was built for another wire."""


class StartError(AtollError):
    """The node cannot start. `hint` says what to do about it, `setting` which one is to blame, if one is."""

    def __init__(self, message: str, hint: str = "", setting: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.setting = setting
