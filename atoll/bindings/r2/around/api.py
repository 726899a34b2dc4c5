"""Settings of buckets over HTTP: public hosts, CORS and lifecycle rules, notifications."""

from __future__ import annotations

import secrets

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.refusals import ApiCode, Refused
from atoll.api.routes import Route, caller_of, json_answer, no_content, read_shape
from atoll.bindings.r2.admin import existing_place, told
from atoll.bindings.r2.around.cors import Cors, checked_cors
from atoll.bindings.r2.around.lifecycle import LifecycleRule, LifecycleRules, checked_lifecycle
from atoll.bindings.r2.around.notifications import MAX_RULES, NotificationRule, NotificationRules, checked_rule
from atoll.bindings.r2.ops import R2
from atoll.bindings.r2.store import BucketPlace
from atoll.errors import InvalidArgument

MAX_DOCUMENT = 1 << 20


class PublicAnswer(msgspec.Struct):
    public: bool
    url: str


class NewNotification(msgspec.Struct, forbid_unknown_fields=True):
    queue: str
    event_types: list[str]
    prefix: str = ""
    suffix: str = ""


class BucketApi:
    def __init__(self, binding: R2, audit: AuditLog) -> None:
        self._store = binding.store
        self._settings, self._public, _, self._notifications = binding.around
        self._audit = audit

    def routes(self) -> list[Route]:
        read, change = Scope.READ, Scope.DEPLOY
        public, cors = "/api/r2/{bucket}/public", "/api/r2/{bucket}/cors"
        lifecycle, notifications = "/api/r2/{bucket}/lifecycle", "/api/r2/{bucket}/notifications"
        routes = [
            Route("GET", public, self.public, read, "Whether anybody may read a bucket, and where", gives=PublicAnswer),
            Route("PUT", public, self.show, change, "Let anybody read the objects of a bucket", gives=PublicAnswer),
            Route("DELETE", public, self.hide, change, "Make a bucket private again", status=204),
            Route("GET", cors, self.cors, read, "The CORS rules of a bucket", gives=Cors),
            Route("PUT", cors, self.set_cors, change, "Replace the CORS rules of a bucket", Cors, Cors),
            Route("DELETE", cors, self.delete_cors, change, "Delete the CORS rules of a bucket", status=204),
            Route("GET", lifecycle, self.lifecycle, read, "The lifecycle rules of a bucket", gives=LifecycleRules),
            Route(
                "PUT", lifecycle, self.set_lifecycle, change, "Replace the lifecycle rules of a bucket",
                LifecycleRules, LifecycleRules,
            ),
            Route(
                "POST", lifecycle, self.add_lifecycle, change, "Add a lifecycle rule to a bucket",
                LifecycleRule, LifecycleRules, status=201,
            ),
            Route(
                "DELETE", f"{lifecycle}/{{rule:path}}", self.remove_lifecycle, change, "Delete a lifecycle rule",
                status=204,
            ),
            Route(
                "GET", notifications, self.notifications, read, "The notifications of a bucket",
                gives=NotificationRules,
            ),
            Route(
                "POST", notifications, self.add_notification, change, "Send changes of objects to a queue",
                NewNotification, NotificationRule, status=201,
            ),
            Route(
                "DELETE", f"{notifications}/{{rule}}", self.remove_notification, change, "Delete a notification",
                status=204,
            ),
        ]  # fmt: skip
        return [told(route) for route in routes]

    async def _place(self, request: Request, action: str = "") -> BucketPlace:
        place = await existing_place(self._store, request)
        if action:
            await self._audit.note(caller_of(request), action, place.bucket)
        return place

    # Public buckets

    async def public(self, request: Request) -> Response:
        return await self._shown(await self._place(request))

    async def _shown(self, place: BucketPlace) -> Response:
        url = await self._public.url_of(place)
        return json_answer(PublicAnswer(bool(url), url))

    async def show(self, request: Request) -> Response:
        if not self._public.domain:
            hint = "an operator can set r2_public_domain"
            raise Refused(ApiCode.FORBIDDEN, "this node has no public buckets", hint)
        place = await self._place(request, "r2.public")
        await self._public.show(place)
        return await self._shown(place)

    async def hide(self, request: Request) -> Response:
        await self._public.hide(await self._place(request, "r2.private"))
        return no_content()

    # CORS

    async def cors(self, request: Request) -> Response:
        return json_answer(await self._settings.find(await self._place(request), Cors) or Cors([]))

    async def set_cors(self, request: Request) -> Response:
        place = await self._place(request)
        wanted = checked_cors(await read_shape(request, Cors, limit=MAX_DOCUMENT))
        await self._audit.note(caller_of(request), "r2.set-cors", place.bucket)
        await self._settings.change(place, Cors, lambda old: wanted)
        return json_answer(wanted)

    async def delete_cors(self, request: Request) -> Response:
        await self._settings.change(await self._place(request, "r2.delete-cors"), Cors, lambda old: None)
        return no_content()

    # Lifecycle

    async def lifecycle(self, request: Request) -> Response:
        found = await self._settings.find(await self._place(request), LifecycleRules)
        return json_answer(found or LifecycleRules([]))

    async def set_lifecycle(self, request: Request) -> Response:
        place = await self._place(request)
        wanted = checked_lifecycle(await read_shape(request, LifecycleRules, limit=MAX_DOCUMENT))
        await self._audit.note(caller_of(request), "r2.set-lifecycle", place.bucket)
        await self._settings.change(place, LifecycleRules, lambda old: wanted if wanted.rules else None)
        return json_answer(wanted)

    async def add_lifecycle(self, request: Request) -> Response:
        place, rule = await self._place(request), await read_shape(request, LifecycleRule)

        def add(old: LifecycleRules | None) -> LifecycleRules:
            return checked_lifecycle(LifecycleRules([*(old.rules if old is not None else []), rule]))

        add(None)  # is it valid?
        await self._audit.note(caller_of(request), "r2.add-lifecycle", place.bucket, rule.id)
        return json_answer(await self._settings.change(place, LifecycleRules, add), status=201)

    async def remove_lifecycle(self, request: Request) -> Response:
        place, name = await self._place(request), request.path_params["rule"]
        found = await self._settings.find(place, LifecycleRules)
        if found is None or name not in [rule.id for rule in found.rules]:
            hint = f"GET /api/r2/{place.bucket}/lifecycle lists the rules"
            raise Refused(ApiCode.NOT_FOUND, f"there is no lifecycle rule `{name[:80]}`", hint)

        def remove(old: LifecycleRules | None) -> LifecycleRules | None:
            left = [rule for rule in (old.rules if old is not None else []) if rule.id != name]
            return LifecycleRules(left) if left else None

        await self._audit.note(caller_of(request), "r2.remove-lifecycle", place.bucket, name)
        await self._settings.change(place, LifecycleRules, remove)
        return no_content()

    # Notifications

    async def notifications(self, request: Request) -> Response:
        found = await self._settings.find(await self._place(request), NotificationRules)
        return json_answer(found or NotificationRules([]))

    async def add_notification(self, request: Request) -> Response:
        place, body = await self._place(request), await read_shape(request, NewNotification)
        rule = checked_rule(
            NotificationRule(secrets.token_hex(8), body.queue, body.event_types, body.prefix, body.suffix)
        )
        if not await self._notifications.sink.knows(place.tenant, body.queue):
            hint = "GET /api/queues lists the queues; a deploy that names one creates it"
            raise Refused(ApiCode.NOT_FOUND, f"there is no queue `{body.queue[:80]}`", hint)

        def add(old: NotificationRules | None) -> NotificationRules:
            rules = [*(old.rules if old is not None else []), rule]
            if len(rules) > MAX_RULES:
                raise InvalidArgument(f"a bucket has at most {MAX_RULES} notifications")
            return NotificationRules(rules)

        await self._audit.note(caller_of(request), "r2.add-notification", place.bucket, body.queue)
        await self._settings.change(place, NotificationRules, add)
        return json_answer(rule, status=201)

    async def remove_notification(self, request: Request) -> Response:
        place, name = await self._place(request), request.path_params["rule"]
        found = await self._settings.find(place, NotificationRules)
        if found is None or name not in [rule.id for rule in found.rules]:
            hint = f"GET /api/r2/{place.bucket}/notifications lists them"
            raise Refused(ApiCode.NOT_FOUND, f"there is no notification `{name[:80]}`", hint)

        def remove(old: NotificationRules | None) -> NotificationRules | None:
            left = [rule for rule in (old.rules if old is not None else []) if rule.id != name]
            return NotificationRules(left) if left else None

        await self._audit.note(caller_of(request), "r2.remove-notification", place.bucket, name)
        await self._settings.change(place, NotificationRules, remove)
        return no_content()
