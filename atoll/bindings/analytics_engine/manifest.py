"""Analytics Engine for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import MB, BindingSetting, CommandGroup, Facts, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.analytics_engine.ops import AnalyticsEngine

    return AnalyticsEngine(services)


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.analytics_engine.admin import AnalyticsApi
    from atoll.bindings.analytics_engine.ops import AnalyticsEngine

    assert isinstance(binding, AnalyticsEngine)
    return AnalyticsApi(binding.points, tools.audit).routes()


MANIFEST = Manifest(
    kind="analytics_engine",
    one_node="data points of Analytics Engine",
    holds=("analytics.db", "SELECT count(*) FROM datasets"),
    make=make,
    config="atoll.bindings.analytics_engine.config",
    type_name="AnalyticsEngineDataset",
    settings={
        "analytics_bytes": BindingSetting(
            256 * MB, Facts("Maximum size of a tenant's data points. The oldest make room for new ones.", low=MB)
        ),
        "analytics_days": BindingSetting(90, Facts("Days after which data points are deleted.", low=1, high=3_650)),
    },
    admin=admin,
    commands={
        "analytics": CommandGroup(
            "atoll.bindings.analytics_engine.cli",
            "Query the data points that workers wrote.",
            phrases={r"\bGET /api/analytics_engine/datasets lists\b": "`atoll analytics list` lists"},
        ),
    },
)
