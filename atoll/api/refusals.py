"""Errors of the control API: permanent codes, and the exception that carries one.

Codes from 10000 are the ones that Cloudflare's API uses for the same mistake, so tools that know them work here. Codes
from 19000 are Atoll's own. Clients and tests match on the code, never on the text.
"""

from __future__ import annotations

from collections.abc import Sized
from enum import IntEnum
from typing import NamedTuple

from atoll.errors import AtollError, BindingRefused, Failure, StorageAway, StorageFailed


class ApiCode(IntEnum):
    UNAUTHENTICATED = 10000
    PARSE = 10006
    NOT_FOUND = 10007
    NOT_EMPTY = 10008
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
    TRAFFIC_SPLIT = 10215
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
    HOST_RESERVED = 19015
    BAD_TRIGGER = 19031
    TRIGGER_TAKEN = 19032
    ASSETS_MISSING = 19033
    STORAGE = 19030
    ONE_NODE = 19034
    WORK_LIMIT = 19041
    BUSY = 19042
    SLOW_BODY = 19043


class ApiFacts(NamedTuple):
    status: int
    type: str
    meaning: str


API_ERRORS: dict[ApiCode, ApiFacts] = {
    ApiCode.PARSE: ApiFacts(422, "parse", "A module does not parse, or an import cannot be resolved."),
    ApiCode.NOT_FOUND: ApiFacts(404, "not_found", "There is no such path, version or other resource."),
    ApiCode.NOT_EMPTY: ApiFacts(409, "not_empty", "The bucket to delete has objects."),
    ApiCode.BAD_NAME: ApiFacts(400, "bad_name", "The worker's name is invalid."),
    ApiCode.VALIDATION: ApiFacts(422, "validation", "The top-level code threw, did not finish or exceeded a limit."),
    ApiCode.BAD_BODY: ApiFacts(400, "bad_body", "The body is not the JSON that this endpoint expects."),
    ApiCode.TOO_LARGE: ApiFacts(413, "too_large", "The worker or the body is larger than this node allows."),
    ApiCode.CONCURRENT: ApiFacts(409, "concurrent", "Another change of the same worker is in progress."),
    ApiCode.BINDING_NAME: ApiFacts(400, "binding_name", "A binding has no name, or a name that is not valid in `env`."),
    ApiCode.VAR_TOO_BIG: ApiFacts(400, "var_too_big", "A variable of `env` is larger than 5 KB."),
    ApiCode.TOO_MANY_VARS: ApiFacts(400, "too_many_vars", "`env` has more than 128 variables."),
    ApiCode.BINDING_GONE: ApiFacts(
        409, "binding_gone", "A resource that the version of a rollback is bound to was deleted."
    ),
    ApiCode.UNSUPPORTED_HANDLERS: ApiFacts(
        422, "unsupported_handlers", "The script has handlers, but none that this node calls."
    ),
    ApiCode.NO_HANDLERS: ApiFacts(422, "no_handlers", "The script has no handler."),
    ApiCode.NO_WORKER: ApiFacts(404, "no_worker", "There is no such worker."),
    ApiCode.SECRETS_CHANGED: ApiFacts(
        409, "secrets_changed", "Secrets have changed since the version of a rollback was active."
    ),
    ApiCode.TRAFFIC_SPLIT: ApiFacts(
        409, "traffic_split", "The traffic of the worker is split between versions, and the change would end that."
    ),
    ApiCode.INTERNAL: ApiFacts(500, "internal", "A bug in Atoll; the node's log has the details."),
    ApiCode.FORBIDDEN_ORIGIN: ApiFacts(403, "forbidden_origin", "The request comes from a page of another site."),
    ApiCode.MEDIA_TYPE: ApiFacts(415, "media_type", "The Content-Type of the body is not application/json."),
    ApiCode.METHOD: ApiFacts(405, "method", "The path exists but does not support this method."),
    ApiCode.NAME_TAKEN: ApiFacts(
        409, "name_taken", "A worker with this name, or another tenant's host below it, already exists."
    ),
    ApiCode.ROUTE_TAKEN: ApiFacts(409, "route_taken", "Another worker has this route."),
    ApiCode.HOST_RESERVED: ApiFacts(
        409, "host_reserved", "The host is reserved for the tenant that had it until recently."
    ),
    ApiCode.BAD_ROUTE: ApiFacts(400, "bad_route", "A route is not a valid pattern."),
    ApiCode.BAD_LIMIT: ApiFacts(400, "bad_limit", "A limit is not a positive whole number within the node's cap."),
    ApiCode.ONE_NODE: ApiFacts(501, "one_node", "What only one node can have, on nodes that share a PostgreSQL."),
    ApiCode.UNAVAILABLE: ApiFacts(
        503, "unavailable", "No engine could check the worker, or the node is overloaded; try again."
    ),
    ApiCode.FORBIDDEN: ApiFacts(403, "forbidden", "The token is not allowed to do this."),
    ApiCode.UNAUTHENTICATED: ApiFacts(401, "unauthenticated", "The token is missing or not valid."),
    ApiCode.TOO_MANY_WORKERS: ApiFacts(403, "too_many_workers", "The tenant's quota of workers is reached."),
    ApiCode.TOO_MANY_LOGINS: ApiFacts(429, "too_many_logins", "Too many failed logins from this address."),
    ApiCode.NO_TENANT: ApiFacts(404, "no_tenant", "There is no such tenant."),
    ApiCode.TENANT_IN_USE: ApiFacts(
        409, "tenant_in_use", "The tenant is not empty, or it is `default`, which cannot be deleted."
    ),
    ApiCode.QUOTA: ApiFacts(403, "quota", "A quota of the tenant is reached."),
    ApiCode.BAD_TRIGGER: ApiFacts(422, "bad_trigger", "A cron or queue consumer of the worker is not valid."),
    ApiCode.TRIGGER_TAKEN: ApiFacts(409, "trigger_taken", "Another worker consumes this queue."),
    ApiCode.ASSETS_MISSING: ApiFacts(
        409, "assets_missing", "The manifest of the assets, or a file that it names, was not uploaded."
    ),
    ApiCode.WORK_LIMIT: ApiFacts(422, "work_limit", "The request needs more time or memory than one request may use."),
    ApiCode.BUSY: ApiFacts(429, "busy", "Too many requests of the tenant are in progress."),
    ApiCode.SLOW_BODY: ApiFacts(408, "slow_body", "The body did not arrive in time."),
    ApiCode.STORAGE: ApiFacts(
        507, "storage", "The node could not read or write its data, for example because the disk is full."
    ),
}


class Refused(AtollError):
    """The API refuses a request. `hint` says what to do; `failure` is the place in the script, if the script failed."""

    def __init__(
        self, reason: ApiCode, message: str, hint: str = "", failure: Failure | None = None, retry_after: int = 0
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.hint = hint
        self.failure = failure
        self.retry_after = retry_after  # seconds; 0: retrying the same request does not help


# The status that a binding's refusal begins with.
BINDING_FAILURES = {
    "403": ApiCode.QUOTA,
    "404": ApiCode.NOT_FOUND,
    "409": ApiCode.CONCURRENT,
    "413": ApiCode.TOO_LARGE,
    "414": ApiCode.TOO_LARGE,
}


def binding_refusal(error: BindingRefused | StorageFailed) -> Refused:
    """Turn the error that a binding raises for a worker into an error of the API."""
    if isinstance(error, StorageAway):
        hint = "workers go on; check the database server, and try again"
        return Refused(ApiCode.UNAVAILABLE, str(error), hint, retry_after=error.retry_after)
    if isinstance(error, StorageFailed):
        return Refused(ApiCode.STORAGE, str(error), "the node's log has the details; try again when that is fixed")
    status, _, words = str(error).partition(" ")
    return Refused(BINDING_FAILURES.get(status, ApiCode.BAD_BODY), words)


def refuse_many(field: str, entries: Sized, limit: int) -> None:
    """Refuse a list in a body that has too many entries."""
    if len(entries) > limit:
        raise bad_body(f"`{field}` has {len(entries)} entries, more than the limit of {limit}")


def bad_body(message: str, hint: str = "") -> Refused:
    return Refused(ApiCode.BAD_BODY, message, hint)
