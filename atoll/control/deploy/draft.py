"""Drafts: the deployment that a body makes, alone or on top of the current version.

Pure, like checks/body.py: a draft is dropped if an engine cannot load it.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import UNSET

from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.config import Settings
from atoll.control.checks.bindings import Kinds, checked_bindings
from atoll.control.checks.body import (
    MAX_PATTERN,
    MAX_ROUTES,
    MAX_VARS,
    DeployBody,
    WantedLimits,
    checked_date,
    checked_egress,
    checked_env,
    checked_isolation,
    checked_limits,
    checked_switches,
)
from atoll.control.checks.code import Unpacked, checked_code, unpacked
from atoll.control.checks.words import MAX_MESSAGE, MAX_TAG, checked_flags, checked_maps, checked_words
from atoll.control.store.secret_rows import new_secret_id
from atoll.control.store.workers import Deployment
from atoll.manifests.every import triggers
from atoll.router import BadPattern, Router, parse_pattern
from atoll.workers import Version

ABOUT_ITSELF = frozenset({"name", "message", "tag", "rollback"})  # fields that do not change the worker


@dataclass(frozen=True, slots=True)
class Identity:
    """The facts of a new version that its body cannot choose."""

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


def new_draft(sent: DeployBody, identity: Identity, settings: Settings, router: Router, kinds: Kinds) -> Deployment:
    """The first version of a worker. The default compatibility date is today's and stays."""
    body = unpacked(sent)
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
    sent: DeployBody,
    identity: Identity,
    current: Deployment,
    source_maps: Mapping[str, bytes],
    settings: Settings,
    router: Router,
    kinds: Kinds,
) -> Deployment:
    """The next version of a worker: the current one, with the fields of the body replaced."""
    body = unpacked(sent)
    if all(getattr(body, field) is UNSET for field in body.__struct_fields__ if field not in ABOUT_ITSELF):
        raise bad_body("the body changes nothing", "send `script`, or `modules` with `main`, or other fields to change")
    version = replace(current.version, id=identity.version_id, tag="", created_at=identity.now_ms)
    if body.code is not UNSET or body.main is not UNSET:
        modules, main = checked_code(body, settings.script_bytes)
        version = replace(version, modules=modules, main=main, stored_bytes=0)
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
    draft: Deployment, body: Unpacked, identity: Identity, settings: Settings, router: Router, kinds: Kinds
) -> Deployment:
    version = draft.version
    if body.isolation is not UNSET:
        version = replace(version, isolation=checked_isolation(body.isolation))
    if body.switches is not UNSET:
        version = replace(version, switches=checked_switches(body.switches, version.switches, settings))
    if body.preview_urls is not UNSET:
        version = replace(version, preview_urls=body.preview_urls)
    if body.egress is not UNSET:
        version = replace(version, egress=checked_egress(body.egress))
    if body.env is not UNSET:
        version = replace(version, env=checked_env(body.env))
    if body.secrets is not UNSET:
        if len(body.secrets) > MAX_VARS:
            raise too_many_variables(len(body.secrets))
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
    """A draft with one secret changed or removed."""
    known = {each: text for each, text in draft.version.secrets.items() if each != name}
    ids = {each: found for each, found in draft.secrets.items() if each != name}
    if value is not None:
        checked_env({name: value})
        known[name], ids[name] = value, new_secret_id(draft.version.id, name)
    return replace(draft, version=replace(draft.version, secrets=known), secrets=ids)


def secrets_draft(base: Deployment, identity: Identity, changes: Mapping[str, str | None]) -> Deployment:
    """The next version of a worker: a version with secrets changed or, for None, removed."""
    draft = replace(base, version=replace(base.version, id=identity.version_id, tag="", created_at=identity.now_ms))
    for name, value in changes.items():
        draft = with_secret(draft, name, value)
    refuse_twofold(draft.version)
    if any(value is not None for value in changes.values()):
        refuse_too_many(draft.version)
    parts = []
    for word, is_set in (("set", True), ("deleted", False)):
        if names := [name for name, value in changes.items() if (value is not None) is is_set]:
            parts.append(f"secret{'s' if len(names) > 1 else ''} {', '.join(names)} {word}")
    message = "; ".join(parts)[:MAX_MESSAGE]
    return replace(draft, updated_at=identity.now_ms, author=identity.author, message=message)


def refuse_twofold(version: Version) -> None:
    kinds = {"variable": version.env, "secret": version.secrets, "binding": version.grants}
    for (one, names), (two, others) in itertools.combinations(kinds.items(), 2):
        for name in names.keys() & others.keys():
            raise bad_body(f"`{name}` is both a {one} and a {two}", "a name in `env` can mean one thing only")


def refuse_too_many(version: Version) -> None:
    count = len(version.env) + len(version.secrets)
    if count > MAX_VARS:
        raise too_many_variables(count)


def too_many_variables(count: int) -> Refused:
    message = f"`env` would have {count} variables and secrets, more than the limit of {MAX_VARS}"
    return Refused(ApiCode.TOO_MANY_VARS, message, "combine some of them")


def _with_events(version: Version, body: Unpacked) -> Version:
    if body.compatibility_flags is not UNSET:
        version = replace(version, compatibility_flags=checked_flags(body.compatibility_flags))
    given = {name: trigger for name, trigger in triggers().items() if getattr(body, name) is not UNSET}
    if given:
        entries = {name: tuple(trigger.checked(getattr(body, name))) for name, trigger in given.items()}
        kept = {name: each for name, each in {**version.triggers, **entries}.items() if each}
        version = replace(version, triggers=kept)
    return version


def _with_words(draft: Deployment, body: Unpacked, settings: Settings) -> Deployment:
    """The fields for readers: why this version was made, its tag, and where its code came from."""
    if body.message is not UNSET:
        draft = replace(draft, message=checked_words("message", body.message, MAX_MESSAGE))
    if body.tag is not UNSET:
        draft = replace(draft, version=replace(draft.version, tag=checked_words("tag", body.tag, MAX_TAG)))
    if body.maps is not UNSET:
        maps = checked_maps(body.maps, draft.version.modules, 2 * settings.script_bytes)
        draft = replace(draft, source_maps=maps)
    return draft


def checked_routes(texts: Sequence[str], router: Router) -> tuple[str, ...]:
    """The patterns in their canonical spelling. Whether they are free is checked later, when they are taken."""
    if len(texts) > MAX_ROUTES:
        raise Refused(
            ApiCode.BAD_ROUTE,
            f"`routes` has {len(texts)} entries, more than the limit of {MAX_ROUTES}",
            "use a wildcard",
        )
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
                ApiCode.BAD_ROUTE,
                f"the route `{text}` is on a control host",
                "use another host: a control host never serves workers",
            )
        patterns.append(str(pattern))
    return tuple(dict.fromkeys(patterns))
