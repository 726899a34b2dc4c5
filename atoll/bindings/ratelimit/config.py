"""`ratelimits` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import ConfigField, Reading


class LimitWindow(Struct):
    limit: int
    period: int


class ConfigRateLimit(Struct):
    """An entry of `ratelimits`."""

    name: str
    namespace_id: str | int
    simple: LimitWindow


class UnsafeRateLimit(ConfigRateLimit):
    """The same in its older form, an entry of `unsafe.bindings`."""

    type: str = "ratelimit"


def read(limits: list[ConfigRateLimit], reading: Reading) -> None:
    for each in limits:
        window = {"limit": each.simple.limit, "period": each.simple.period}
        reading.bind("ratelimit", each.name, namespace=str(each.namespace_id), **window)


FIELDS = (
    ConfigField(name="ratelimits", shape=list[ConfigRateLimit], read=read, unsafe=("ratelimit", UnsafeRateLimit)),
)
