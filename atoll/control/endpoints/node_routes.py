"""The endpoints about the node as a whole, for operators."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping

from atoll.api.audit import AuditLog
from atoll.api.routes import Route
from atoll.bindings.base import Binding
from atoll.bindings.services import Objects
from atoll.config import Settings
from atoll.control.endpoints.backup import BackupApi
from atoll.control.endpoints.config import ConfigApi
from atoll.control.endpoints.damage import DamageApi
from atoll.control.endpoints.engines import EnginesApi
from atoll.control.endpoints.health import HealthApi
from atoll.control.endpoints.metrics import MetricsApi
from atoll.control.endpoints.nodes import Nodes, NodesApi
from atoll.observe.alerts import NodeAlerts
from atoll.observe.engine_overview import EngineOverview


def node_routes(
    settings: Settings,
    origins: Mapping[str, str] | None,
    audit: AuditLog,
    objects: Objects,
    cluster: Nodes | None,
    engines: EngineOverview,
    alerts: NodeAlerts,
    bindings: Collection[Binding],
    state: Callable[[], str],
    send_metrics: Callable[[Callable[[], Awaitable[bytes]]], None],
) -> list[Route]:
    engines.node_name = "" if cluster is None else cluster.members.name
    return [
        *MetricsApi(alerts.meter, alerts.sources, bindings, state, send_metrics).routes(),
        *NodesApi(cluster, audit).routes(),
        *ConfigApi(settings, origins).routes(),
        *BackupApi(settings, audit).routes(),
        *DamageApi(objects).routes(),
        *EnginesApi(engines, audit).routes(),
        *HealthApi(settings, alerts).routes(),
    ]
