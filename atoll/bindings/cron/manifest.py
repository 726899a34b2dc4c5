"""Cron triggers for the rest of Atoll. They have no entry in `env`: a deploy asks for them in `crons`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import CommandGroup, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.cron.history import CronHistory
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.cron.clock import CronTriggers
    from atoll.bindings.cron.ops import CronBinding

    return CronBinding(CronTriggers(services.events, make_history(services)))


def make_history(services: Services) -> CronHistory:
    if services.cluster is None:
        from atoll.bindings.cron.sqlite import SqliteCronHistory

        return SqliteCronHistory(services.settings.data / "crons.db")
    import time

    from atoll.bindings.cron.postgres import PostgresCronHistory

    return PostgresCronHistory(services.cluster.postgres, services.cluster.members, time.time)


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.cron.admin import CronsApi
    from atoll.bindings.cron.ops import CronBinding

    assert isinstance(binding, CronBinding)
    return CronsApi(tools, binding.trigger).routes()


MANIFEST = Manifest(
    kind="cron",
    moved="atoll.bindings.cron.moving",
    make=make,
    cloudflare="atoll.bindings.cron.cloudflare",
    config="atoll.bindings.cron.config",
    templates={"cron": "runs every five minutes, and remembers it"},
    trigger="atoll.bindings.cron.entries",
    admin=admin,
    commands={
        "cron": CommandGroup(
            "atoll.bindings.cron.cli", "See when crons run and how they ran, and run one now.", also=("triggers",)
        ),
    },
)
