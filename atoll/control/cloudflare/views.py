"""Workers, versions and deployments as Cloudflare's API shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atoll.clock import iso_time
from atoll.control.cloudflare.drafts import BindingTypes
from atoll.control.cloudflare.ids import hashed, hashed_uuid, version_uuid
from atoll.control.deploy.deployer import Deployer
from atoll.control.store.deployment_rows import DeploymentEntry
from atoll.control.store.version_rows import VersionSummary
from atoll.control.store.workers import Deployment
from atoll.manifests.every import cloudflare_parts
from atoll.public_address import PublicAddress
from atoll.workers import Version, host_label

ENVIRONMENT = "production"
SOURCE = "wrangler"  # anything else makes wrangler compare with the dashboard


def script(found: Deployment) -> dict[str, Any]:
    """A worker, as a script."""
    version = found.version
    return {
        "id": found.name,
        "tag": hashed(found.id),
        "tags": [],
        "etag": hashed(version.id),
        "handlers": list(found.handlers),
        "created_on": iso_time(found.created_at),
        "modified_on": iso_time(found.updated_at),
        "usage_model": "standard",
        "has_assets": version.assets is not None,
        "has_modules": True,
        "logpush": False,
        "compatibility_date": version.compatibility_date,
        "compatibility_flags": list(version.compatibility_flags),
        "last_deployed_from": SOURCE,
        "deployment_id": version_uuid(version.id),
        "startup_time_ms": round(found.startup_ms, 3),
        **facts(version),
    }


def facts(version: Version) -> dict[str, Any]:
    """The fields that bindings add."""
    found: dict[str, Any] = {}
    for part in cloudflare_parts().values():
        if part.facts is not None:
            found |= part.facts(version)
    return found


def service(found: Deployment) -> dict[str, Any]:
    times = {"created_on": iso_time(found.created_at), "modified_on": iso_time(found.updated_at)}
    environment = {"environment": ENVIRONMENT, "script": script(found), **times}
    return {"id": found.name, "default_environment": environment, "environments": [environment], **times}


def settings(found: Deployment, types: BindingTypes) -> dict[str, Any]:
    version = found.version
    return {
        "bindings": types.shown(version),
        "compatibility_date": version.compatibility_date,
        "compatibility_flags": list(version.compatibility_flags),
        "limits": {"cpu_ms": version.limits.cpu_ms},
        "usage_model": "standard",
        "logpush": False,
        "tags": [],
        "annotations": notes(found.message, version.tag),
        **facts(version),
    }


def notes(message: str, tag: str, by: str = "") -> dict[str, str]:
    given = {"workers/message": message, "workers/tag": tag, "workers/triggered_by": by}
    return {name: text for name, text in given.items() if text}


def subdomain(found: Deployment, deployer: Deployer, address: PublicAddress) -> dict[str, Any]:
    """The own host of a worker, which cannot be turned off, and the hosts of its previews."""
    shown: dict[str, Any] = {"enabled": True, "url": address.url(found.name)}
    shown["previews_enabled"] = deployer.previews.is_on and found.version.preview_urls
    return shown | {"preview_url_suffix": f"-{host_label(found.name)}.{address.domain}"}


def worker(found: Deployment, deployer: Deployer, address: PublicAddress) -> dict[str, Any]:
    """A worker, in the newer API."""
    return {
        "id": hashed(found.id),
        "name": found.name,
        "created_on": iso_time(found.created_at),
        "updated_on": iso_time(found.updated_at),
        "deployed_on": iso_time(found.updated_at),
        "logpush": False,
        "observability": {"enabled": True},
        "tags": [],
        "subdomain": subdomain(found, deployer, address),
        **facts(found.version),
    }


def listed_version(row: VersionSummary) -> dict[str, Any]:
    return _version(row.id, row.number, row.created_at, row.author, notes(row.message, row.tag)) | {
        "startup_time_ms": round(row.startup_ms, 3)
    }


def _version(uuid: str, number: int, created_at: int, author: str, told: dict[str, str]) -> dict[str, Any]:
    times = {"created_on": iso_time(created_at), "modified_on": iso_time(created_at)}
    return {
        "id": version_uuid(uuid),
        "number": number,
        "metadata": {**times, "source": SOURCE, "author_id": hashed(author), "author_email": author},
        "annotations": told | {"workers/triggered_by": "upload"},
    }


def version(found: Deployment, types: BindingTypes, has_preview: bool) -> dict[str, Any]:
    """One version in full."""
    each = found.version
    shown = _version(each.id, found.number, each.created_at, found.author, notes(found.message, each.tag))
    shown["metadata"]["has_preview"] = has_preview
    runtime = {
        "compatibility_date": each.compatibility_date,
        "compatibility_flags": list(each.compatibility_flags),
        "usage_model": "standard",
        "limits": {"cpu_ms": each.limits.cpu_ms},
    }
    code = {"etag": hashed(each.id), "handlers": list(found.handlers), "last_deployed_from": SOURCE}
    resources = {"bindings": types.shown(each), "script": code, "script_runtime": runtime | facts(each)}
    return shown | {"resources": resources, "startup_time_ms": round(found.startup_ms, 3)}


def deployment(entry: DeploymentEntry) -> dict[str, Any]:
    by = {"rollback": "rollback", "secret": "secret"}.get(entry.source, "deployment")
    return {
        "id": hashed_uuid(entry.id),
        "source": SOURCE,
        "strategy": "percentage",
        "author_email": entry.author,
        "created_on": iso_time(entry.created_at),
        "annotations": notes(entry.message, "", by),
        "versions": [
            {"version_id": version_uuid(share.version_id), "percentage": share.hundredths / 100}
            for share in entry.versions
        ],
    }


def deployments(entries: Sequence[DeploymentEntry]) -> dict[str, Any]:
    return {"deployments": [deployment(each) for each in entries]}
