"""env.AI as ops: which model, how many tokens, and the answers of the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from atoll.bindings.ai.asked import TASKS, request_body
from atoll.bindings.ai.faults import NO_SERVER, AiFault, no_model
from atoll.bindings.ai.server import AiServer, AiStream
from atoll.bindings.ai.settings import AiSettings
from atoll.bindings.ai.usage import AiUsage
from atoll.bindings.base import Binding, OpCall, Reply, op, own_task
from atoll.bindings.services import Services
from atoll.errors import InvalidArgument

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


class Ai(Binding):
    kind = "ai"

    def __init__(self, services: Services, settings: AiSettings | None) -> None:
        self._server = settings and AiServer(services.settings, settings, services.pacer, services.holdings)
        self._use = AiUsage(services.settings.data / "ai.db")
        self._most: dict[str, int | None] = {}
        self._faults: dict[int, int] = {}  # requests without a result, by the number of the fault

    # --- tenants ---

    async def usage(self, tenant: str) -> dict[str, int]:
        return {"ai_tokens_per_day": self._use.of(tenant).tokens}

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        self._most[tenant] = most["ai_tokens_per_day"]

    async def forget(self, tenant: str) -> None:
        self._most.pop(tenant, None)
        await self._use.forget(tenant)

    async def metrics(self) -> Sequence[Metric]:
        from atoll.bindings.ai.metrics import ai_metrics

        return ai_metrics(self._use, self._faults)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._use.close()

    # --- ops ---

    @op("ai.run")
    async def run(self, call: OpCall) -> Reply:
        """Ask a model. The reply has the JSON of the server, or the number of a stream, or a fault."""
        await own_task()
        try:
            return await self._run(call)
        except AiFault as fault:
            self._faults[fault.code] = self._faults.get(fault.code, 0) + 1
            return fault.reply

    async def _run(self, call: OpCall) -> Reply:
        model, task = call.meta.get("model"), call.meta.get("task")
        asked = TASKS.get(task) if isinstance(task, str) else None
        if not isinstance(model, str) or asked is None:
            raise InvalidArgument("`model` or `task` is missing")
        server, version = self._server, call.scope.version
        if server is None:
            raise AiFault(3043, NO_SERVER, 500)
        served = server.settings.model(model, is_embedding=asked.is_embedding)
        if served is None:
            raise no_model(model)
        tenant = version.tenant
        most = self._most.get(tenant)
        if most is not None and self._use.of(tenant).tokens >= most:
            raise AiFault(3036, f"You have used up your daily allocation of {most:,} tokens of this node.", 429)
        is_stream = call.meta.get("stream") is True and not asked.is_embedding
        body = request_body(asked, served, call.body, is_stream=is_stream)

        def count(prompt: int, completion: int) -> None:
            self._use.add(tenant, 1, prompt, completion)

        if not is_stream:
            return Reply({}, await server.whole(version, model, asked.path, body, count))
        return Reply({"stream": call.scope.keep(await server.stream(version, model, asked.path, body, count))})

    @op("ai.read", free=True)
    async def read(self, call: OpCall) -> Reply:
        """The next bytes of a stream; none at its end."""
        number = call.meta.get("stream")
        if call.meta.get("cancel") is True:
            call.scope.release(number)
            return Reply()
        stream = call.scope.find(number, AiStream)
        try:
            piece = await stream.read()
        except AiFault as fault:
            call.scope.release(number)
            return fault.reply
        if not piece:
            call.scope.release(number)
        return Reply({}, piece)

    @op("ai.models")
    def models(self, call: OpCall) -> Reply:
        """The names of models that the operator mapped."""
        if self._server is None:
            return AiFault(3043, NO_SERVER, 500).reply
        return Reply({"models": sorted(self._server.settings.models)})
