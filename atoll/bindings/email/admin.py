"""Email over HTTP: deliver a message to a worker."""

from __future__ import annotations

from itertools import islice

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from atoll.api.admin import AdminTools, DeployedWorker
from atoll.api.bodies import read_body
from atoll.api.callers import Caller, Scope
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import HEADERS, Query, Route, caller_of, json_answer
from atoll.bindings.email.addresses import is_address
from atoll.bindings.email.faults import EmailFault
from atoll.bindings.email.incoming import Handled, IncomingMail

WHAT_IT_NEEDS = (
    "Invalid email. Your request must include URL parameters specifying the `from` and `to` addresses, as well as an "
    "email in the body"
)


class HandledAnswer(msgspec.Struct):
    outcome: str
    message: str
    rejected: str | None


class EmailApi:
    def __init__(self, tools: AdminTools, incoming: IncomingMail, max_bytes: int) -> None:
        self._tools = tools
        self._incoming = incoming
        self._max_bytes = max_bytes

    def routes(self) -> list[Route]:
        text = {"type": "string"}
        queries = (
            Query("from", "The sender of the envelope", text),
            Query("to", "The recipient of the envelope", text),
        )
        worker = Query("worker", "The worker; may be left out if only one has an email handler", text)
        return [
            Route(
                "POST", "/api/workers/{worker}/email", self.deliver, Scope.DEPLOY,
                "Deliver a message, the body of the request, to the email handler", gives=HandledAnswer, query=queries,
            ),
            Route(
                "POST", "/cdn-cgi/handler/email", self.deliver_as_miniflare, Scope.DEPLOY,
                "The same; the response is plain text", query=(worker, *queries), media="text/plain",
            ),
        ]  # fmt: skip

    async def deliver(self, request: Request) -> Response:
        found = self._tools.find_worker(request.path_params["worker"], caller_of(request))
        handled = await self._deliver(request, found)
        return json_answer(HandledAnswer(*handled))

    async def deliver_as_miniflare(self, request: Request) -> Response:
        found = self._chosen(request.query_params.get("worker"), caller_of(request))
        handled = await self._deliver(request, found)
        if handled.rejected is not None:
            text = f"Worker rejected email with the following reason: {handled.rejected}"
            return PlainTextResponse(text, 400, headers=HEADERS)
        if handled.outcome != "ok":
            return PlainTextResponse(f"{handled.outcome}: {handled.message}\n", 500, headers=HEADERS)
        return PlainTextResponse("Worker successfully processed email", headers=HEADERS)

    async def _deliver(self, request: Request, found: DeployedWorker) -> Handled:
        mail_from, to = request.query_params.get("from", ""), request.query_params.get("to", "")
        content = await read_body(request, self._max_bytes, "`email_bytes` sets the largest message")
        if not is_address(mail_from) or not is_address(to) or not content:
            raise bad_body(WHAT_IT_NEEDS, "send ?from=a@example.com&to=b@example.com and the message as the body")
        if "email" not in found.handlers:
            raise Refused(
                ApiCode.NO_HANDLERS, f"`{found.name}` has no email() handler", "export the handler and deploy again"
            )
        await self._tools.audit.note(caller_of(request), "email.deliver", found.name, to)
        try:
            return await self._incoming.deliver(found.version, mail_from, to, content)
        except EmailFault as fault:
            raise bad_body(str(fault), "the body is an email: headers, an empty line, text") from None

    def _chosen(self, name: str | None, caller: Caller) -> DeployedWorker:
        if name is not None:
            return self._tools.find_worker(name, caller)
        workers = self._tools.workers_of(caller.tenant)
        found = list(islice((each for each in workers if "email" in each.handlers), 2))
        if len(found) != 1:
            raise Refused(
                ApiCode.NOT_FOUND,
                f"{'several workers have' if found else 'no worker has'} an email() handler",
                "name one: ?worker=hello",
            )
        return found[0]
