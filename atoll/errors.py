"""Every error Atoll raises on purpose.

    AtollError
    ├── InvalidArgument     the worker passed an argument that the API rejects
    ├── NotGranted          the worker named a binding it was not given
    ├── QuotaExceeded       a quota or limit of the worker is reached
    ├── LoopDetected        workers called each other in too long a chain
    ├── HostRefused         a worker may not reach this host or port
    ├── AddressRefused      a worker may not reach this address
    ├── NetworkError        another server could not be reached, or its answer was not HTTP
    ├── CalleeFailed        a worker that another worker called has failed
    ├── BindingRefused      a binding refuses the worker's op
    ├── StorageFailed       a disk is full, cannot be written to or holds damaged data
    │   └── StorageAway     the database server cannot be reached now
    ├── LoadFailed          a version does not compile, start or export a handler
    ├── EngineError         an engine broke the wire protocol, died or was built for another version
    ├── StartError          the node cannot start: port taken, bad setting, missing file
    └── Refused             the control API refuses a request (in api/refusals.py, with codes of its own)

`code` is stable: clients and tests match on it, never on the text. An exception that is not an AtollError is a bug in
Atoll: it is logged in full, and the worker or client only sees INTERNAL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from atoll.wire.generated import ERRORS, ErrorCode, ErrorFacts


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call or a load failed, as reported by the engine or Python: the data of error pages and log records."""

    code: ErrorCode
    message: str
    name: str = ""
    stack: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    retry_after: int = 1  # seconds; sent with a 503

    @property
    def facts(self) -> ErrorFacts:
        return ERRORS[self.code]


@dataclass(frozen=True, slots=True)
class ObjectFailure(Failure):
    """The failure of a call to a Durable Object, with the properties that the error has at the caller."""

    is_retryable: bool = False
    is_overloaded: bool = False
    is_reset: bool = False
    is_final: bool = False  # an alarm that failed with it is not tried again
    object_id: str = ""

    @property
    def flags(self) -> dict[str, bool | str]:
        told = {
            "retryable": self.is_retryable,
            "overloaded": self.is_overloaded,
            "durableObjectReset": self.is_reset,
        }
        id = {"durableObjectId": self.object_id} if self.object_id else {}
        return {"remote": True, **{name: True for name, value in told.items() if value}, **id}


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
    """A worker that was called from inside the node failed; `failure` says how."""

    code = ErrorCode.NETWORK

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class BindingRefused(AtollError):
    code = ErrorCode.BINDING


class StorageFailed(AtollError):
    """`path` is the damaged or unwritable file. Only operators see it, never a worker."""

    code = ErrorCode.STORAGE

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class StorageAway(StorageFailed):
    """The storage cannot be reached at this moment: the same again may work soon."""

    retry_after = 2  # seconds


class LoadFailed(AtollError):
    """A version could not be loaded; `failure` says where and why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class EngineError(AtollError):
    """An engine broke the wire protocol, died, or was built for another version of it."""


class StartError(AtollError):
    """The node cannot start. `hint` says what to do, `setting` names the setting at fault, if any."""

    def __init__(self, message: str, hint: str = "", setting: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.setting = setting
