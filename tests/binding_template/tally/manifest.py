"""Tallies for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import BindingQuota, BindingSetting, CommandGroup, Facts, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.tally.ops import TallyBinding
    from atoll.bindings.tally.watches import TallyTriggers

    return TallyBinding(services.settings.value("tally_step"), TallyTriggers(services.events))


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.tally.admin import TalliesApi
    from atoll.bindings.tally.ops import TallyBinding

    assert isinstance(binding, TallyBinding)
    return TalliesApi(binding, tools.audit).routes()


MANIFEST = Manifest(
    kind="tally",
    make=make,
    config="atoll.bindings.tally.config",
    type_name="Tally",
    trigger="atoll.bindings.tally.entries",
    settings={"tally_step": BindingSetting(1, Facts("How much one call of add() adds.", low=1))},
    quotas={"tallies": BindingQuota("Tallies that it may have.")},
    admin=admin,
    commands={"tallies": CommandGroup("atoll.bindings.tally.cli", "List tallies and set them to 0.")},
)
