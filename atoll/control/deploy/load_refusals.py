"""Refuses the deploy of a version that an engine could not load, that Atoll would never call, or with a bad trigger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from atoll.api.refusals import ApiCode, Refused
from atoll.bindings.triggers import BadTrigger
from atoll.errors import Failure
from atoll.manifests.every import manifests, triggers
from atoll.wire.generated import ErrorCode

# The engine's error -> the code of the refusal. Any other error is a failure of the script.
LOAD_FAILURES: dict[ErrorCode, ApiCode] = {
    ErrorCode.COMPILE: ApiCode.PARSE,
    ErrorCode.NO_DEFAULT: ApiCode.NO_HANDLERS,
    ErrorCode.NO_FETCH: ApiCode.NO_HANDLERS,
    ErrorCode.FETCH_NOT_FUNCTION: ApiCode.NO_HANDLERS,
    ErrorCode.INTERNAL: ApiCode.INTERNAL,
    ErrorCode.ENGINE_DIED: ApiCode.UNAVAILABLE,
    ErrorCode.OVERLOADED: ApiCode.UNAVAILABLE,
    ErrorCode.UNAVAILABLE: ApiCode.UNAVAILABLE,
    ErrorCode.UNLOADED: ApiCode.UNAVAILABLE,
    ErrorCode.SHUTTING_DOWN: ApiCode.UNAVAILABLE,
}

LOAD_HINTS: dict[ErrorCode, str] = {
    ErrorCode.COMPILE: "nothing was changed; fix the script and deploy again",
    ErrorCode.NO_DEFAULT: "write `export default { fetch(request, env, ctx) { … } }`",
    ErrorCode.NO_FETCH: 'give the default export a fetch method, or call addEventListener("fetch", …)',
    ErrorCode.FETCH_NOT_FUNCTION: "make `fetch` of the default export a function",
    ErrorCode.CPU: "move work out of the top level: it runs at every cold start",
    ErrorCode.ENGINE_DIED: "nothing was changed; try again; if it happens again, the script crashes the engine",
}

# The handlers that a node calls: for requests, events of triggers, other workers.
CALLED = (
    "fetch",
    *(name for manifest in manifests().values() for name in manifest.handlers),
    *(trigger.handler for trigger in triggers().values() if trigger.handler),
)


def refuse_uncallable(handlers: Sequence[str]) -> None:
    """Refuse a worker whose handlers are all unknown to Atoll: it would never run."""
    if not {*CALLED, "rpc"} & set(handlers):
        raise Refused(
            ApiCode.UNSUPPORTED_HANDLERS,
            f"this node calls none of the worker's handlers: {', '.join(handlers)[:200]}",
            f"give it {', '.join(CALLED[:-1])} or {CALLED[-1]}",
        )


def load_refusal(failure: Failure) -> Refused:
    """The refusal of a deploy whose version an engine could not load."""
    reason = LOAD_FAILURES.get(failure.code, ApiCode.VALIDATION)
    message = f"{failure.name}: {failure.message}" if failure.name else failure.message
    hint = LOAD_HINTS.get(failure.code, "nothing was changed")
    return Refused(reason, message, hint, failure)


@contextmanager
def told_to_the_deployer() -> Iterator[None]:
    """What is wrong with a trigger refuses the deploy."""
    try:
        yield
    except BadTrigger as error:
        code = ApiCode.TRIGGER_TAKEN if error.is_taken else ApiCode.BAD_TRIGGER
        raise Refused(code, str(error), error.hint) from None
