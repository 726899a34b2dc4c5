"""fetch(): one request to another server or to a worker of this node, its bodies piece by piece.

    fetch.start   send a request; replies with the head of the response and the part of its body that has arrived
    fetch.read    the next piece of the response body
    fetch.send    send the rest of the response body as the body of the worker's own response, past the engine
    fetch.write   a piece of the request body; the reply is the back-pressure
    fetch.hand_over  the response of the worker is the WebSocket of this fetch, which hibernates in its object
    fetch.cancel  end the fetch

The worker numbers its fetches, so it can write to one and cancel it before the response arrives. The JavaScript half
follows redirects, hop by hop: each hop is a fetch.start, checked and counted like any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from atoll.bindings.base import Binding, Later, OpCall, Reply, op, own_task
from atoll.bindings.cache.http_cache import HttpCache
from atoll.bindings.durable_object.facets import is_facet
from atoll.bindings.fetch.answers import check_status, thrown_by
from atoll.bindings.fetch.caching import CachedAnswer, CachingRule, kept, read_rule
from atoll.bindings.fetch.decode import Decoding
from atoll.bindings.fetch.fetching import DecodingSteps, Fetching
from atoll.bindings.fetch.lane import Lane
from atoll.bindings.fetch.messages import WantedFetch, inner_head, read_wanted, request_bytes, response_text
from atoll.bindings.fetch.partners import ObjectNames, Partners
from atoll.bindings.fetch.quick import QuickFetch, QuickInner
from atoll.bindings.fetch.stencils import InnerStencils, Stencils
from atoll.bindings.loops import loop_lines
from atoll.bindings.passes import OBJECT, is_pass
from atoll.bindings.scope import CallScope, check_hops
from atoll.bindings.service.target import ServiceTarget, ServiceWays, callee_of, target_of
from atoll.bindings.services import InnerRequest, InnerResponse, ObjectTarget, Services
from atoll.egress.client import HttpClient
from atoll.egress.gate import own_ports
from atoll.errors import CalleeFailed, Failure, InvalidArgument, NotGranted
from atoll.wire.codec import read_reason
from atoll.wire.generated import Event
from atoll.workers import Grant, Version

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

MAX_WRITE = 1 << 20
Bound: TypeAlias = ServiceTarget | ObjectTarget | None


class Fetch(Binding):
    kind = "fetch"
    keeps_data = False
    ambient = True

    def __init__(self, services: Services, cache: HttpCache, objects: ObjectNames) -> None:
        settings = services.settings
        self._cache = cache
        self._objects = objects
        self._routes = services.routes
        self._inner = services.inner
        self._workers = services.workers
        self._passes = services.passes
        self._ports = {80, 443} | own_ports(settings)  # ports on which a host of this node means this node
        self.gate = services.gate
        self.client = HttpClient(settings, self.gate, services.pacer, services.holdings)
        self._stencils = Stencils(self.client, settings.base_domain)
        self._inner_stencils = InnerStencils()
        self._ways = ServiceWays(services.workers, settings.base_domain)
        self._steps = DecodingSteps(services.pacer)
        self.partners = Partners()

    async def metrics(self) -> Sequence[Metric]:
        from atoll.bindings.fetch.metrics import fetch_metrics

        return fetch_metrics(self.client.stats)

    async def close(self) -> None:
        self.client.close()
        self._steps.close()

    # --- ops ---

    @op("fetch.start", free=True)
    def start(self, call: OpCall) -> Later | Awaitable[Reply]:
        service = call.meta.get("service")
        grant = None if service is None else self.partners.grant_of(call.scope.version, service)
        call.scope.spend(external=service is None or grant is not None)
        check_hops(call.scope.hops)
        if grant is not None:
            return self._start_as(call, grant)
        trace = call.scope.trace
        is_traced = trace is not None and trace.is_kept
        if not is_traced:  # if traced, every request has a span of its own
            quick = None if "service" in call.meta else self._start_quick(call)
            quick = quick or (None if "object" in call.meta else self._start_bound(call))
            if quick is not None:
                return quick
        wanted = read_wanted(call.meta)
        if trace is not None and is_traced:
            wanted.tell_trace(trace)
        return self._start_inner(call, wanted, is_traced) or self._start(call, wanted)

    def _start_quick(self, call: OpCall) -> Later | None:
        """The fast path: a request like an earlier one, to a server with an open connection."""
        scope, lane = call.scope, call.scope.local(Lane)
        found = self._stencils.find(call.meta, scope, self.gate.edition)
        if found is None or not lane.places.has_room:
            return None
        stencil, path = found
        if stencil.target.port in self._ports and self._routes.find(stencil.authority, path) is not None:
            return None
        number = lane.checked(call.meta["fetch"])
        data = stencil.request(path, call.body)
        exchange = self.client.send_kept(stencil.pool, data, method=stencil.method)
        if exchange is None:
            return None
        quick = QuickFetch(self.client, self._reply, scope.version, stencil, data, exchange)
        quick.begin(lane, number)
        return quick

    def _start_bound(self, call: OpCall) -> Later | None:
        """The fast path: a request like an earlier one, to a worker of this node."""
        scope = call.scope
        found = self._inner_stencils.find(call.meta, scope, self.gate.edition)
        if found is None:
            return None
        like, path = found
        if like.bound is not None:
            callee: Version | None = callee_of(self._workers, scope.version, like.bound)
        else:
            callee = self._routes.find(like.authority, path.encode())
        if callee is None:
            return None
        head = like.head(call.meta["url"], len(call.body))
        within, way = None, None
        if like.bound is not None:
            within, way = scope, self._ways.find(scope.version, like.wanted.service, like.bound)
        request = InnerRequest(callee, head, call.body, True, scope.hops, like.event, within, way=way)
        return self._begin_inner(call, like.wanted, request)

    def _start_inner(self, call: OpCall, wanted: WantedFetch, is_traced: bool) -> Later | None:
        """The fast path to a worker of this node, unless a body is streamed or the fetch would have to wait."""
        scope = call.scope
        if wanted.streamed or wanted.upgrade or "cf" in call.meta:
            return None
        callee: Version | None
        if wanted.service is not None:
            bound, callee = self._bound(wanted, scope)
        else:
            bound, callee = None, self._callee(wanted, scope.version)
        if callee is None:
            return None
        quick = self._begin_inner(call, wanted, self._inner_request(callee, bound, wanted, scope, call.body))
        if quick is None or is_traced or isinstance(bound, ObjectTarget) or is_pass(wanted.service):
            return quick
        self._inner_stencils.remember(call.meta, scope, wanted, bound, self._stencils.zone(scope), self.gate.edition)
        return quick

    def _begin_inner(self, call: OpCall, wanted: WantedFetch, request: InnerRequest) -> Later | None:
        lane = call.scope.local(Lane)
        # A service call is not a connection; otherwise six of them could wait for each other.
        is_connection = request.within is None
        if is_connection and not lane.places.has_room:
            return None
        number = lane.checked(call.meta.get("fetch"))
        quick = QuickInner(self._inner_reply, wanted, self._inner.start(request))
        quick.begin(lane, number, is_connection)
        return quick

    async def _start_as(self, call: OpCall, grant: Grant) -> Reply:
        return await self._start(call, await self.partners.wanted(call.scope.version, grant, call.meta))

    async def _start(self, call: OpCall, wanted: WantedFetch) -> Reply:
        scope, lane = call.scope, call.scope.local(Lane)
        fetching = Fetching(str(wanted.target), wanted.length)
        number = lane.add(call.meta.get("fetch"), fetching)
        try:
            await own_task()
            fetching.task = asyncio.current_task()
            if wanted.service is None:
                await lane.places.enter(fetching)
            if fetching.error is not None:
                raise fetching.error
            rule = read_rule(call.meta.get("cf"), wanted, scope.version.tenant)
            if wanted.target.identity is not None or wanted.asked is not None:  # what it brings is for its owner alone
                reply = await self._answer(wanted, scope, fetching, call.body)
            elif rule is None:
                edition = self.gate.edition
                reply = await self._answer(wanted, scope, fetching, call.body)
                self._stencils.remember(call.meta, scope, edition)
            else:
                reply = await self._answer_cached(rule, wanted, scope, fetching)
        except BaseException as error:
            is_aborted = isinstance(error, asyncio.CancelledError) and fetching.error is not None
            task, fetching.task = fetching.task, None
            lane.drop(number)
            if not is_aborted or scope.is_over or task is None:
                raise
            task.uncancel()  # the fetch was aborted, not the op, which still gets a reply
            raise fetching.error or error from None
        fetching.task = None
        if reply.meta["ended"]:
            lane.drop(number)
        return reply

    @op("fetch.read", free=True)
    async def read(self, call: OpCall) -> Reply:
        lane = call.scope.local(Lane)
        number = call.meta.get("fetch")
        fetching = lane.find(number)
        raw = call.meta.get("raw") is True
        lane.places.touch(fetching)
        try:
            chunk = await fetching.read(raw)
        except Exception:
            lane.drop(number)
            raise
        call.scope.heard(fetching.is_socket)
        ended = not chunk or fetching.is_read(raw)
        if ended:
            lane.drop(number)
        return Reply({"ended": ended}, chunk)

    @op("fetch.send", free=True)
    async def send(self, call: OpCall) -> Reply:
        lane, response = call.scope.local(Lane), call.scope.response
        number = call.meta.get("fetch")
        fetching = lane.find(number)
        raw = call.meta.get("raw") is True
        piece = call.body or await fetching.read(raw)
        try:
            while piece and response is not None and await response.send(piece):
                lane.places.touch(fetching)
                piece = await fetching.read(raw)
        finally:
            lane.drop(number)
        return Reply()

    @op("fetch.write", free=True)
    async def write(self, call: OpCall) -> Reply:
        if len(call.body) > MAX_WRITE:
            raise InvalidArgument("fetch: a piece of the body is too long")
        fetching = call.scope.local(Lane).find(call.meta.get("fetch"))
        return Reply({"more": await fetching.write(call.body, call.meta.get("ended") is True)})

    @op("fetch.hand_over", free=True)
    def hand_over(self, call: OpCall) -> Reply:
        from atoll.bindings.fetch.upgrade import handed_over

        return handed_over(call.scope.local(Lane), call.meta.get("fetch"), call.scope.response)

    @op("fetch.cancel", free=True, continues=True)
    def cancel(self, call: OpCall) -> Reply:
        call.scope.local(Lane).drop(call.meta.get("fetch"))
        return Reply()

    # --- targets ---

    async def _answer_cached(
        self, rule: CachingRule, wanted: WantedFetch, scope: CallScope, fetching: Fetching
    ) -> Reply:
        """A response from the cache; or else from its source, stored as it is read."""
        self.gate.check_host(scope.version, wanted.target.host, wanted.target.port)
        hit = await self._cache.match(rule.place, rule.request)
        if hit is None:
            fetching.keep = lambda answerer, status, lines: kept(self._cache, rule, answerer, status, lines)
            return await self._answer(wanted, scope, fetching, b"")
        answer = CachedAnswer(hit)
        fetching.begin(answer)
        return self._reply(wanted.is_ours, fetching, hit.status, "", answer.lines)

    async def _answer(self, wanted: WantedFetch, scope: CallScope, fetching: Fetching, body: bytes) -> Reply:
        if wanted.service is not None:
            bound, callee = self._bound(wanted, scope)
            return await self._ask_worker(callee, bound, wanted, scope, fetching, body)
        served = self._callee(wanted, scope.version)
        if served is not None:
            return await self._ask_worker(served, None, wanted, scope, fetching, body)
        if wanted.upgrade:
            return await self._upgrade(wanted, scope, fetching)
        data = request_bytes(wanted, body, loop_lines(scope.hops, scope.others), self._stencils.zone(scope))
        version, target, method = scope.version, wanted.target, wanted.method
        if wanted.streamed:
            exchange = await self.client.request(
                version, target, data, method=method, is_whole=False, chunked=wanted.chunked
            )
            fetching.begin(exchange)
            await exchange.head()
        else:
            exchange = await self.client.answered(version, target, data, method=method)
            fetching.begin(exchange)
        return self._reply(wanted.is_ours, fetching, exchange.status, exchange.reason, exchange.lines)

    async def _upgrade(self, wanted: WantedFetch, scope: CallScope, fetching: Fetching) -> Reply:
        """Ask a server for a WebSocket. If it refuses, its response is like any other."""
        from atoll.bindings.fetch.upgrade import switched  # imported late: many nodes never use one
        from atoll.egress.websocket import Handshake, ServerSocket

        handshake = Handshake(wanted.protocols)
        loops = loop_lines(scope.hops, scope.others)
        data = request_bytes(wanted, b"", loops, self._stencils.zone(scope), handshake.lines())
        answer = await self.client.upgrade(scope.version, wanted.target, data, handshake)
        fetching.begin(answer)
        if isinstance(answer, ServerSocket):
            return switched(fetching, answer, answer.lines)
        return self._reply(wanted.is_ours, fetching, answer.status, answer.reason, answer.lines)

    def _bound(self, wanted: WantedFetch, scope: CallScope) -> tuple[ServiceTarget | ObjectTarget, Version]:
        """What a binding leads to, and the version that answers there."""
        version = scope.version
        if wanted.object is None:
            if isinstance(wanted.service, str) and is_facet(wanted.service):
                return self._objects.facet(scope, wanted.service)
            if isinstance(wanted.service, str) and is_pass(wanted.service):
                passed = self._passes.read(version.tenant, wanted.service)
                if passed.kind == OBJECT:
                    return self._objects.passed(version, passed)
            bound = target_of(version, wanted.service, self._passes)
            return bound, callee_of(self._workers, version, bound)
        grant = version.grants.get(wanted.service) if isinstance(wanted.service, str) else None
        if grant is None or grant.kind != self._objects.kind:
            raise NotGranted("this worker has no Durable Object binding of that name")
        return self._objects.target(version, grant, wanted.object.get("id"), wanted.object.get("name"))

    def _callee(self, wanted: WantedFetch, version: Version) -> Version | None:
        """The worker of this node that serves the host of a request. If it is the caller, its origin does, if any."""
        if wanted.target.port not in self._ports or wanted.asked is not None or wanted.target.identity is not None:
            return None
        found = self._routes.find(wanted.authority.encode(), wanted.path.encode())
        if found is not None and found.worker_id == version.worker_id and (own := self.partners.origin_of(version)):
            self.partners.forward(wanted, own)
            return None
        if found is not None:
            self.gate.check_host(version, wanted.target.host, wanted.target.port, has_address=False)
        return found

    async def _ask_worker(
        self,
        callee: Version,
        bound: Bound,
        wanted: WantedFetch,
        scope: CallScope,
        fetching: Fetching,
        body: bytes,
    ) -> Reply:
        call = self._inner.start(self._inner_request(callee, bound, wanted, scope, body))
        fetching.begin(call)
        try:
            response = await call.response()
        except CalleeFailed as failed:
            call.close()
            return self._inner_reply(wanted, fetching, failed.failure)
        if response.status == 101 and wanted.upgrade:
            from atoll.bindings.fetch.upgrade import InnerSocket, switched

            return switched(fetching, InnerSocket(call), response.head)
        return self._inner_reply(wanted, fetching, response)

    def _inner_request(
        self, callee: Version, bound: Bound, wanted: WantedFetch, scope: CallScope, body: bytes
    ) -> InnerRequest:
        head, event = inner_head(wanted, self._stencils.zone(scope), len(body), scope.others), 0
        if isinstance(bound, ServiceTarget):
            head, event = bound.head(head)
        elif bound is not None:
            event = int(Event.ENTRYPOINT)
        ended = not (wanted.streamed or wanted.upgrade)
        # Subrequests of a worker behind a service binding count for its caller too. A worker that is found by its host
        # may belong to another tenant.
        within, target = (scope if bound is not None else None), (bound if isinstance(bound, ObjectTarget) else None)
        way = None
        if target is not None and wanted.object is not None and isinstance(wanted.service, str):
            way = self._objects.way(scope.version, wanted.service, target)
        return InnerRequest(callee, head, body, ended, scope.hops, event, within, target, way=way)

    def _inner_reply(self, wanted: WantedFetch, fetching: Fetching, answer: InnerResponse | Failure) -> Reply:
        if isinstance(answer, Failure):
            if wanted.service is not None:
                return thrown_by(answer)
            facts = answer.facts  # the same as a client of that worker gets
            text = f"error code: {facts.page}".encode()
            meta = {"status": facts.status, "reason": "", "head": "content-type: text/plain\r\n", "coding": ""}
            return Reply({**meta, "ended": True}, text)
        check_status(answer, wanted)
        reason, lines = read_reason(answer.head)
        return self._reply(wanted.is_ours, fetching, answer.status, reason.decode("latin-1"), lines)

    def _reply(self, is_ours: bool, fetching: Fetching, status: int, reason: str, lines: bytes) -> Reply:
        fetching.hand_over(status, lines)
        head, coding = response_text(lines, is_ours)
        if coding and not fetching.at_end:
            fetching.decoding = Decoding(coding, fetching.where)
            fetching.steps = self._steps
        if is_ours:  # the worker sees the decoded body
            coding = ""
        first = b"" if coding else fetching.first()
        meta = {"status": status, "reason": reason, "head": head, "coding": coding, "ended": fetching.at_end}
        return Reply(meta, first)
