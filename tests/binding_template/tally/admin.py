"""Tallies over HTTP."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.refusals import ApiCode, Refused
from atoll.api.routes import Route, caller_of, json_answer, no_content

if TYPE_CHECKING:
    from atoll.bindings.tally.ops import TallyBinding


class TallyAnswer(msgspec.Struct):
    name: str
    count: int


class TalliesAnswer(msgspec.Struct):
    tallies: list[TallyAnswer]


class TalliesApi:
    def __init__(self, binding: TallyBinding, audit: AuditLog) -> None:
        self._binding = binding
        self._audit = audit

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/api/tallies", self.list, Scope.READ, "The tallies of a tenant", gives=TalliesAnswer),
            Route("DELETE", "/api/tallies/{tally}", self.reset, Scope.DEPLOY, "Set a tally to 0", status=204),
        ]

    async def list(self, request: Request) -> Response:
        counts = self._binding.counts.get(caller_of(request).tenant, Counter())
        return json_answer(TalliesAnswer([TallyAnswer(name, count) for name, count in sorted(counts.items())]))

    async def reset(self, request: Request) -> Response:
        name, caller = request.path_params["tally"], caller_of(request)
        counts = self._binding.counts.get(caller.tenant, Counter())
        if name not in counts:
            raise Refused(ApiCode.NOT_FOUND, f"there is no tally `{name[:80]}`", "GET /api/tallies lists them")
        await self._audit.note(caller, "tally.reset", name)
        del counts[name]
        return no_content()
