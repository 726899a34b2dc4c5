"""What a deploy asks for: a body over what is there already, as the deployment that would come of it.

Pure, like check.py: a draft is thrown away when an engine does not like it.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import UNSET

from atoll.config import Settings
from atoll.control.bindings import Kinds, checked_bindings
from atoll.control.check import (
    MAX_PATTERN,
    MAX_ROUTES,
    MAX_VARS,
    DeployBody,
    WantedLimits,
    bad_body,
    checked_code,
    checked_date,
    checked_egress,
    checked_env,
    checked_isolation,
    checked_limits,
    checked_switches,
)
from atoll.control.check_events import (
    MAX_MESSAGE,
    MAX_TAG,
    checked_consumers,
    checked_crons,
    checked_flags,
    checked_maps,
    checked_tails,
    checked_words,
)
from atoll.control.refusals import ApiCode, Refused
from atoll.control.secret_rows import new_secret_id
from atoll.control.workers import Deployment
from atoll.router import BadPattern, Router, parse_pattern
from atoll.workers import Version

ABOUT_ITSELF = frozenset({"name", "message", "tag"})  # fields that change nothing about the worker


@dataclass(frozen=True, slots=True)
class Identity:
    """What a body cannot choose about the version it makes."""

    worker_id: str
    worker_name: str
    tenant: str
    version_id: str
    author: str
    now: float  # seconds since 1970

    @property
    def now_ms(self) -> int:
        return int(self.now * 1000)

    @property
    def today(self) -> datetime.date:
        return datetime.datetime.fromtimestamp(self.now, datetime.UTC).date()


def new_draft(body: DeployBody, identity: Identity, settings: Settings, router: Router, kinds: Kinds) -> Deployment:
    """The first version of a worker. Without a compatibility date it behaves as of today, for ever."""
    modules, main = checked_code(body, settings.script_bytes)
    version = Version(
        id=identity.version_id,
        worker_id=identity.worker_id,
        worker_name=identity.worker_name,
        tenant=identity.tenant,
        modules=modules,
        main=main,
        limits=checked_limits(WantedLimits(), settings),
        compatibility_date=identity.today.isoformat(),
        created_at=identity.now_ms,
    )
    at = identity.now_ms
    blank = Deployment(
        version,
        number=0,
        routes=(),
        handlers=(),
        startup_ms=0.0,
        created_at=at,
        updated_at=at,
        author=identity.author,
    )
    return _with_fields(blank, body, identity, settings, router, kinds)


def changed_draft(
    body: DeployBody,
    identity: Identity,
    current: Deployment,
    source_maps: Mapping[str, bytes],
    settings: Settings,
    router: Router,
    kinds: Kinds,
) -> Deployment:
    """The next version of a worker: the current one, with whatever fields the body gives in place of the old."""
    if all(getattr(body, field) is UNSET for field in body.__struct_fields__ if field not in ABOUT_ITSELF):
        raise bad_body("the body changes nothing", "send `script`, or `modules` with `main`, or other fields to change")
    version = replace(current.version, id=identity.version_id, tag="", created_at=identity.now_ms)
    if body.script is not UNSET or body.modules is not UNSET or body.main is not UNSET:
        modules, main = checked_code(body, settings.script_bytes)
        version = replace(version, modules=modules, main=main)
        source_maps = {}
    draft = replace(
        current,
        version=version,
        updated_at=identity.now_ms,
        author=identity.author,
        message="",
        source_maps=source_maps,
    )
    return _with_fields(draft, body, identity, settings, router, kinds)


def _with_fields(
    draft: Deployment, body: DeployBody, identity: Identity, settings: Settings, router: Router, kinds: Kinds
) -> Deployment:
    version = draft.version
    if body.isolation is not UNSET:
        version = replace(version, isolation=checked_isolation(body.isolation))
    if body.switches is not UNSET:
        version = replace(version, switches=checked_switches(body.switches, version.switches, settings))
    if body.egress is not UNSET:
        version = replace(version, egress=checked_egress(body.egress))
    if body.env is not UNSET:
        version = replace(version, env=checked_env(body.env))
    if body.secrets is not UNSET:
        for name, value in body.secrets.items():
            draft = with_secret(draft, name, value)
        version = replace(version, secrets=draft.version.secrets)
    if body.bindings is not UNSET:
        version = replace(version, grants=checked_bindings(body.bindings, kinds, version.tenant))
    refuse_twofold(version)
    if body.env is not UNSET or body.secrets is not UNSET:
        refuse_too_many(version)
    if body.limits is not UNSET:
        version = replace(version, limits=checked_limits(body.limits, settings))
    if body.compatibility_date is not UNSET:
        version = replace(version, compatibility_date=checked_date(body.compatibility_date, identity.today))
    patterns = draft.routes if body.routes is UNSET else checked_routes(body.routes, router)
    return _with_words(replace(draft, version=_with_events(version, body), routes=patterns), body, settings)


def with_secret(draft: Deployment, name: str, value: str | None) -> Deployment:
    """A draft in which one secret has another value, or is gone."""
    known = {each: text for each, text in draft.version.secrets.items() if each != name}
    ids = {each: found for each, found in draft.secrets.items() if each != name}
    if value is not None:
        checked_env({name: value})
        known[name], ids[name] = value, new_secret_id(draft.version.id, name)
    return replace(draft, version=replace(draft.version, secrets=known), secrets=ids)


def secret_draft(current: Deployment, identity: Identity, name: str, value: str | None) -> Deployment:
    """The next version of a worker, where one secret has another value, or is gone."""
    version = replace(current.version, id=identity.version_id, tag="", created_at=identity.now_ms)
    draft = with_secret(replace(current, version=version), name, value)
    refuse_twofold(draft.version)
    if value is not None:
        refuse_too_many(draft.version)
    return replace(
        draft,
        updated_at=identity.now_ms,
        author=identity.author,
        message=f"secret {name} {'set' if value is not None else 'deleted'}",
    )


def refuse_twofold(version: Version) -> None:
    kinds = {"variable": version.env, "secret": version.secrets, "binding": version.grants}
    for (one, names), (two, others) in itertools.combinations(kinds.items(), 2):
        for name in names.keys() & others.keys():
            raise bad_body(f"`{name}` is both a {one} and a {two}", "a name in `env` can mean one thing only")


def refuse_too_many(version: Version) -> None:
    count = len(version.env) + len(version.secrets)
    if count > MAX_VARS:
        raise Refused(
            ApiCode.TOO_MANY_VARS, f"`env` would have {count} variables and secrets, more than {MAX_VARS}", "join some"
        )


def _with_events(version: Version, body: DeployBody) -> Version:
    if body.compatibility_flags is not UNSET:
        version = replace(version, compatibility_flags=checked_flags(body.compatibility_flags))
    if body.crons is not UNSET:
        version = replace(version, crons=checked_crons(body.crons))
    if body.queue_consumers is not UNSET:
        version = replace(version, queue_consumers=checked_consumers(body.queue_consumers))
    if body.tail_consumers is not UNSET:
        version = replace(version, tail_consumers=checked_tails(body.tail_consumers))
    return version


def _with_words(draft: Deployment, body: DeployBody, settings: Settings) -> Deployment:
    """What is for people: why this version was made, what it is called, and where its code came from."""
    if body.message is not UNSET:
        draft = replace(draft, message=checked_words("message", body.message, MAX_MESSAGE))
    if body.tag is not UNSET:
        draft = replace(draft, version=replace(draft.version, tag=checked_words("tag", body.tag, MAX_TAG)))
    if body.source_maps is not UNSET:
        maps = checked_maps(body.source_maps, draft.version.modules, 2 * settings.script_bytes)
        draft = replace(draft, source_maps=maps)
    return draft


def checked_routes(texts: Sequence[str], router: Router) -> tuple[str, ...]:
    """The patterns in the one spelling that means them. Whether they are free is seen when they are taken."""
    if len(texts) > MAX_ROUTES:
        raise Refused(ApiCode.BAD_ROUTE, f"{len(texts)} routes are more than {MAX_ROUTES}", "use a wildcard")
    patterns = []
    for text in texts:
        if len(text) > MAX_PATTERN:
            raise Refused(ApiCode.BAD_ROUTE, f"the route {text[:80]!r}… is longer than {MAX_PATTERN} characters")
        try:
            pattern = parse_pattern(text)
        except BadPattern as error:
            raise Refused(
                ApiCode.BAD_ROUTE, str(error), "patterns look like example.com/path/* or *.example.com/*"
            ) from None
        if not pattern.wildcard and router.is_control(pattern.host.encode()):
            raise Refused(
                ApiCode.BAD_ROUTE, f"the route `{text}` is on a control host", "workers never answer there: use another"
            )
        patterns.append(str(pattern))
    return tuple(dict.fromkeys(patterns))
