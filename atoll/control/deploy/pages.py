"""The static assets of a draft: checked rules and the files of a manifest, prepared for requests."""

from __future__ import annotations

from dataclasses import replace

from msgspec import UNSET, Struct

from atoll.api.refusals import Refused, bad_body
from atoll.assets.rules import NO_WORKER, AssetRules, BadAssets, check_rules
from atoll.control.checks.body import DeployBody
from atoll.control.store.asset_rows import table_of
from atoll.control.store.workers import Deployment, WorkerStore
from atoll.offload.threads import in_thread
from atoll.workers import Version


class AssetsAnswer(Struct):
    """The assets of a version, in answers of the API."""

    manifest: str
    files: int
    html_handling: str
    not_found_handling: str
    run_worker_first: bool | tuple[str, ...]


async def with_assets(draft: Deployment, body: DeployBody, store: WorkerStore) -> Deployment:
    """A draft with the assets that its body asks for, or those of the version before. Raises Refused."""
    version = draft.version
    files = version.assets.files if version.assets is not None else {}
    rules = version.assets.rules if version.assets is not None else None
    if body.assets is not UNSET:
        rules = body.assets
        if rules is not None:
            _refuse_bad(rules)
            files = await store.asset_files(version.tenant, rules)
    if rules is None:
        if version.main == NO_WORKER and body.assets is None:
            raise bad_body("the worker would have neither code nor assets", "send `script`, or delete the worker")
        return replace(draft, version=replace(version, assets=None))
    table = await in_thread(table_of, version, rules, files)  # _headers and _redirects may be large
    return replace(draft, version=replace(version, assets=table))


def _refuse_bad(rules: AssetRules) -> None:
    try:
        check_rules(rules)
    except BadAssets as error:
        found = bad_body(f"the assets do not fit: {error}", error.hint)
        raise Refused(found.reason, str(found), error.hint) from None


def shown_assets(version: Version) -> AssetsAnswer | None:
    table = version.assets
    if table is None:
        return None
    rules = table.rules
    return AssetsAnswer(
        rules.manifest, len(table.files), rules.html_handling, rules.not_found_handling, rules.run_worker_first
    )
