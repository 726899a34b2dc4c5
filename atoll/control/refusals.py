"""Why the control API refuses something: permanent codes, and the error that carries one.

Codes from 10000 are those Cloudflare's API uses for the same mistake, so that tools which know them work here; codes
from 19000 are Atoll's own. Clients and tests match on the code, never on the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from atoll.errors import AtollError, BindingRefused, Failure, StorageFailed
from atoll.wire.generated import ErrorCode


class ApiCode(IntEnum):
    UNAUTHENTICATED = 10000
    PARSE = 10006
    NOT_FOUND = 10007
    BAD_NAME = 10016
    VALIDATION = 10021
    BAD_BODY = 10026
    TOO_LARGE = 10027
    CONCURRENT = 10035
    BINDING_NAME = 10052
    VAR_TOO_BIG = 10054
    TOO_MANY_VARS = 10055
    BINDING_GONE = 10056
    TOO_MANY_WORKERS = 10037
    NO_HANDLERS = 10068
    UNSUPPORTED_HANDLERS = 10069
    NO_WORKER = 10090
    SECRETS_CHANGED = 10220
    INTERNAL = 19001
    FORBIDDEN_ORIGIN = 19002
    MEDIA_TYPE = 19003
    METHOD = 19004
    NAME_TAKEN = 19005
    ROUTE_TAKEN = 19006
    BAD_ROUTE = 19007
    BAD_LIMIT = 19008
    UNAVAILABLE = 19009
    FORBIDDEN = 19010
    TOO_MANY_LOGINS = 19011
    NO_TENANT = 19012
    TENANT_IN_USE = 19013
    QUOTA = 19014
    BAD_TRIGGER = 19031
    TRIGGER_TAKEN = 19032
    STORAGE = 19030


class ApiFacts(NamedTuple):
    status: int
    type: str
    meaning: str


API_ERRORS: dict[ApiCode, ApiFacts] = {
    ApiCode.PARSE: ApiFacts(422, "parse", "A module does not parse, or an import cannot be resolved."),
    ApiCode.NOT_FOUND: ApiFacts(404, "not_found", "There is no such path, version or other thing."),
    ApiCode.BAD_NAME: ApiFacts(400, "bad_name", "A worker cannot have this name."),
    ApiCode.VALIDATION: ApiFacts(422, "validation", "The top-level code threw, never finished or used too much."),
    ApiCode.BAD_BODY: ApiFacts(400, "bad_body", "The body is not the JSON this endpoint takes."),
    ApiCode.TOO_LARGE: ApiFacts(413, "too_large", "The worker or the body is larger than this node allows."),
    ApiCode.CONCURRENT: ApiFacts(409, "concurrent", "Another change of the same worker is under way."),
    ApiCode.BINDING_NAME: ApiFacts(400, "binding_name", "A binding has no name, or one that `env` cannot have."),
    ApiCode.VAR_TOO_BIG: ApiFacts(400, "var_too_big", "A variable of `env` is larger than 5 KB."),
    ApiCode.TOO_MANY_VARS: ApiFacts(400, "too_many_vars", "`env` has more than 128 variables."),
    ApiCode.BINDING_GONE: ApiFacts(409, "binding_gone", "What the version to go back to is bound to was deleted."),
    ApiCode.UNSUPPORTED_HANDLERS: ApiFacts(
        422, "unsupported_handlers", "The script has handlers, but none that this node could call."
    ),
    ApiCode.NO_HANDLERS: ApiFacts(422, "no_handlers", "The script has no handler that could be called."),
    ApiCode.NO_WORKER: ApiFacts(404, "no_worker", "There is no such worker."),
    ApiCode.SECRETS_CHANGED: ApiFacts(409, "secrets_changed", "The version to go back to had other secrets."),
    ApiCode.INTERNAL: ApiFacts(500, "internal", "A bug of Atoll's; the details are in the node's own log."),
    ApiCode.FORBIDDEN_ORIGIN: ApiFacts(403, "forbidden_origin", "The request comes from a page of another site."),
    ApiCode.MEDIA_TYPE: ApiFacts(415, "media_type", "The body is not declared as application/json."),
    ApiCode.METHOD: ApiFacts(405, "method", "The path exists but does not take this method."),
    ApiCode.NAME_TAKEN: ApiFacts(409, "name_taken", "A worker with this name exists already."),
    ApiCode.ROUTE_TAKEN: ApiFacts(409, "route_taken", "Another worker has this route."),
    ApiCode.BAD_ROUTE: ApiFacts(400, "bad_route", "A route is not a pattern that could be served."),
    ApiCode.BAD_LIMIT: ApiFacts(400, "bad_limit", "A limit is not a positive whole number within the node's cap."),
    ApiCode.UNAVAILABLE: ApiFacts(503, "unavailable", "No engine could check the worker now; try again."),
    ApiCode.FORBIDDEN: ApiFacts(403, "forbidden", "The token may not do this."),
    ApiCode.UNAUTHENTICATED: ApiFacts(401, "unauthenticated", "The request has no token, or one that lets nobody in."),
    ApiCode.TOO_MANY_WORKERS: ApiFacts(403, "too_many_workers", "The tenant has as many workers as it may have."),
    ApiCode.TOO_MANY_LOGINS: ApiFacts(429, "too_many_logins", "Too many wrong tokens came from this address."),
    ApiCode.NO_TENANT: ApiFacts(404, "no_tenant", "There is no such tenant."),
    ApiCode.TENANT_IN_USE: ApiFacts(409, "tenant_in_use", "The tenant still has something, or is always there."),
    ApiCode.QUOTA: ApiFacts(403, "quota", "The tenant has as much as it may have."),
    ApiCode.BAD_TRIGGER: ApiFacts(422, "bad_trigger", "A cron or queue the worker is to be started by cannot be."),
    ApiCode.TRIGGER_TAKEN: ApiFacts(409, "trigger_taken", "Another worker consumes this queue."),
    ApiCode.STORAGE: ApiFacts(507, "storage", "The node could not store or read: a full disk, say."),
}

# What an engine said of a version -> what the client is told. Whatever is not here is the script's own failure.
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
    ErrorCode.ENGINE_DIED: "nothing was changed; try again, and look for what makes the engine end if it happens again",
}


class Refused(AtollError):
    """The API refuses a request. `hint` says what to do; `failure` is where in the script it went wrong, if it did."""

    def __init__(
        self, reason: ApiCode, message: str, hint: str = "", failure: Failure | None = None, retry_after: int = 0
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.hint = hint
        self.failure = failure
        self.retry_after = retry_after  # seconds; 0: the same request will not do better later


# The statuses that a binding's refusal begins with.
BINDING_FAILURES = {"403": ApiCode.QUOTA, "404": ApiCode.NOT_FOUND, "413": ApiCode.TOO_LARGE, "414": ApiCode.TOO_LARGE}


def binding_refusal(error: BindingRefused | StorageFailed) -> Refused:
    """What a binding would have told a worker, for whoever asks over HTTP."""
    if isinstance(error, StorageFailed):
        return Refused(ApiCode.STORAGE, str(error), "the node's own log has the details; try again when that is mended")
    status, _, words = str(error).partition(" ")
    return Refused(BINDING_FAILURES.get(status, ApiCode.BAD_BODY), words)


# What a node calls in a worker: requests, triggers, other workers.
CALLED = frozenset({"fetch", "scheduled", "queue", "tail", "rpc"})


def refuse_uncallable(handlers: Sequence[str]) -> None:
    """A worker that has only handlers of kinds Atoll does not know would never run."""
    if not CALLED & set(handlers):
        raise Refused(
            ApiCode.UNSUPPORTED_HANDLERS,
            f"this node calls none of the worker's handlers: {', '.join(handlers)[:200]}",
            "give it fetch, scheduled, queue or tail",
        )


def load_refusal(failure: Failure) -> Refused:
    """An engine could not load a version: the same as a refusal of the deploy."""
    reason = LOAD_FAILURES.get(failure.code, ApiCode.VALIDATION)
    message = f"{failure.name}: {failure.message}" if failure.name else failure.message
    hint = LOAD_HINTS.get(failure.code, "nothing was changed")
    return Refused(reason, message, hint, failure)
