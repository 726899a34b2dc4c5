"""The driver's errors as errors of Atoll: with a hint at the start, and without details of the server for tenants."""

from __future__ import annotations

import asyncio

import asyncpg

from atoll.errors import StartError, StorageAway, StorageFailed

AWAY = "the database of this node is not available"
# The server refuses or ends connections, or the network does. Nothing is wrong with the statement.
GONE = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InternalClientError,
    asyncpg.InvalidAuthorizationSpecificationError,
)
# A transaction that lost a race. It was rolled back, so it can be repeated.
RACES = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)


def told(error: BaseException) -> Exception:
    """What callers get for an error of the driver. Errors of our own statements stay as they are: they are bugs."""
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return StorageAway("the database of this node is read-only")
    if isinstance(error, asyncpg.InsufficientResourcesError) and not isinstance(error, asyncpg.TooManyConnectionsError):
        return StorageFailed("the disk or memory of the database is full")
    if isinstance(error, (*GONE, *RACES)):
        return StorageAway(AWAY)
    assert isinstance(error, Exception)
    return error


def start_error(error: BaseException, place: str) -> StartError:
    """Why the node cannot start with this database. `place` has no password in it."""
    text = str(error) or type(error).__name__
    if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
        return StartError(f"PostgreSQL at {place} refuses the user: {text}", "check user and password in store")
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return StartError(f"PostgreSQL at {place} has no such database", "create it, as with createdb", "store")
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        hint = "make the user the owner of the database, or: GRANT CREATE ON DATABASE … TO …"
        return StartError(f"the user of PostgreSQL at {place} may not create tables: {text}", hint)
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return StartError(f"PostgreSQL at {place} is read-only", "name the primary server, not a standby", "store")
    if isinstance(error, asyncpg.ProtocolViolationError) and "startup parameter" in text:
        return through_pooler(place)
    if isinstance(error, asyncpg.TooManyConnectionsError):
        return StartError(f"PostgreSQL at {place} has no free connection: {text}", "raise its max_connections")
    if isinstance(error, ValueError | asyncpg.ClientConfigurationError):
        return StartError("store is not a valid address of PostgreSQL", "see docs/guides/cluster.md", "store")
    return StartError(
        f"PostgreSQL at {place} cannot be reached: {text}", "check that it runs, and the host and port in store"
    )


def through_pooler(place: str) -> StartError:
    return StartError(
        f"there is a connection pooler, such as PgBouncer, at {place}",
        "name PostgreSQL itself: Atoll keeps few connections, and a pooler would mix up their states",
        "store",
    )
