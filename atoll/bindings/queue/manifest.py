"""Queues for the rest of Atoll: producers are a binding, consumers a trigger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import MB, BindingQuota, BindingSetting, CommandGroup, Facts, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.queue.store import QueueStore
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.queue.consumer import QueueTriggers
    from atoll.bindings.queue.ops import QueueBinding

    store = make_store(services)
    return QueueBinding(store, QueueTriggers(services.events, store))


def make_store(services: Services) -> QueueStore:
    if services.cluster is None:
        from atoll.bindings.queue.sqlite import SqliteQueues

        return SqliteQueues(services.settings.data / "queues.db")
    import time

    from atoll.bindings.queue.postgres import PostgresQueues

    store = PostgresQueues(services.cluster.postgres, services.cluster.members, time.time)
    services.cluster.when_renewed(store.look)
    return store


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.queue.admin import QueuesApi
    from atoll.bindings.queue.ops import QueueBinding

    assert isinstance(binding, QueueBinding)
    return QueuesApi(binding.store, binding.trigger, tools.audit).routes()


MANIFEST = Manifest(
    kind="queue",
    moved="atoll.bindings.queue.moving",
    make=make,
    cloudflare="atoll.bindings.queue.cloudflare",
    config="atoll.bindings.queue.config",
    type_name="Queue",
    trigger="atoll.bindings.queue.entries",
    settings={
        "queue_bytes": BindingSetting(
            1_000 * MB,
            Facts("Maximum size of a tenant's waiting queue messages, unless its quota sets another.", low=MB),
        ),
    },
    quotas={"queue_bytes": BindingQuota("Bytes of messages in all its queues.", setting="queue_bytes")},
    admin=admin,
    commands={
        "queues": CommandGroup(
            "atoll.bindings.queue.cli",
            "See what waits in queues, send messages, pause and empty them.",
            also=("queue",),
            phrases={r"\bGET /api/queues\b": "`atoll queues list`"},
        ),
    },
)
