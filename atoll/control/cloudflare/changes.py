"""Changes of what Cloudflare keeps beside the versions of a worker: routes, crons, consumers of queues.

Here they belong to the version. So a change makes a new version and gives it all traffic, and a value that is there
already changes nothing: the second deploy of a project makes one version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from atoll.api.callers import Caller
from atoll.api.refusals import ApiCode, Refused
from atoll.control.checks.body import DeployBody, misfit
from atoll.control.checks.extended import entries_of
from atoll.control.deploy.deployer import Deployer
from atoll.control.store.workers import Deployment


class Changes:
    def __init__(self, deployer: Deployer) -> None:
        self._deployer = deployer
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by worker

    async def make(self, caller: Caller, name: str, fields: Mapping[str, Any]) -> Deployment:
        """Change fields of the active version, if they differ. A function makes the new value of the present one.

        wrangler sends several changes of a worker at once: they are made one after the other.
        """
        worker = self._deployer.find(name, caller).id
        turn = self._turns.get(worker) or self._turns.setdefault(worker, asyncio.Lock())
        async with turn:
            return await self._make(caller, worker, fields)

    async def _make(self, caller: Caller, name: str, fields: Mapping[str, Any]) -> Deployment:
        found = self._deployer.find(name, caller)
        present: dict[str, Any] = {"routes": found.routes, **entries_of(found.version)}
        values = {field: each(present[field]) if callable(each) else each for field, each in fields.items()}
        wanted = {field: value for field, value in values.items() if plain(value) != plain(present.get(field, ()))}
        if not wanted:
            return found
        if self._deployer.is_split(caller.tenant, found.name):
            raise Refused(
                ApiCode.TRAFFIC_SPLIT,
                f"the traffic of `{found.name}` is split between versions, and a change of {', '.join(wanted)} is a"
                " new version",
                "give all traffic to one version first: wrangler versions deploy",
            )
        try:
            body = msgspec.convert(msgspec.to_builtins(wanted), DeployBody)
        except msgspec.ValidationError as error:
            raise misfit(error) from None
        body.message = f"{', '.join(wanted)} changed"
        return await self._deployer.update(found.name, body, caller)


def plain(value: Any) -> Any:
    """A value in a form that can be compared: lists for tuples, objects for structs."""
    return msgspec.json.decode(msgspec.json.encode(value))
