"""R2 for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from atoll.manifests.manifest import MB, BindingQuota, BindingSetting, CommandGroup, Facts, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.r2.around.notifications import MessageSink
    from atoll.bindings.r2.records import RecordedStore
    from atoll.bindings.r2.service.contents import ServiceContents
    from atoll.bindings.services import Services
    from atoll.config import Settings


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.r2.around.lifecycle import Lifecycle
    from atoll.bindings.r2.around.notifications import Notifications
    from atoll.bindings.r2.around.parts import Around
    from atoll.bindings.r2.around.public import PublicBuckets
    from atoll.bindings.r2.around.settings import BucketSettings
    from atoll.bindings.r2.credentials import Credentials
    from atoll.bindings.r2.ops import R2
    from atoll.public_address import public_address

    store, look_seconds = _store(services)
    settings = BucketSettings(store.records)
    notifications = Notifications(store.records, cast("MessageSink", need("queue")), look_seconds=look_seconds)
    store.noting = notifications
    lifecycle = Lifecycle(store, settings)
    lifecycle.start()
    address = public_address(services.settings, services.settings.port)
    public = PublicBuckets(store.records, public_domain(services.settings), address)
    around = Around(settings, public, lifecycle, notifications)
    return R2(store, Credentials(store.records, services.seals), around)


def _store(services: Services) -> tuple[RecordedStore, float | None]:
    """The store, and how often to look for what other nodes left."""
    if services.cluster is None:
        from atoll.bindings.r2.sqlite import SqliteObjects

        return SqliteObjects(services.settings.data, _service(services)), None
    from atoll.bindings.r2.postgres.store import LOOK_SECONDS, PostgresObjects, refuse_own_index

    refuse_own_index(services.settings.data)
    cluster = services.cluster
    return PostgresObjects(services.settings.data, cluster.postgres, cluster.session, _service(services)), LOOK_SECONDS


def _service(services: Services) -> Callable[[str, Callable[[], bytes]], ServiceContents] | None:
    """Opens the service that holds contents, if the settings name one."""
    from atoll.bindings.r2.service.client import ServiceClient
    from atoll.bindings.r2.service.contents import ServiceContents
    from atoll.bindings.r2.service.settings import read_service

    named = read_service(services.settings)
    if named is None:
        return None
    client = ServiceClient(services.settings, named, services.pacer, services.holdings)
    return lambda folder, owner: ServiceContents(client, folder, owner)


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.r2.admin import R2Api
    from atoll.bindings.r2.around.api import BucketApi
    from atoll.bindings.r2.credentials_api import CredentialsApi
    from atoll.bindings.r2.ops import R2

    assert isinstance(binding, R2)
    keys = CredentialsApi(binding.credentials, tools.audit, binding.store)
    buckets = BucketApi(binding, tools.audit)
    return [*R2Api(binding.store, tools.audit).routes(), *buckets.routes(), *keys.routes()]


def hosts(settings: Settings) -> tuple[str, ...]:
    name, domain = str(settings.value("s3_host")), public_domain(settings)
    s3 = () if name == "off" else (name or f"s3.{settings.base_domain}",)
    return (*s3, domain, f"*.{domain}") if domain else s3


def public_domain(settings: Settings) -> str:
    """The domain of public buckets; "" if there is none."""
    name = str(settings.value("r2_public_domain")).lower().strip(".")
    return "" if name == "off" else name or f"buckets.{settings.base_domain}"


def site(binding: Binding) -> object:
    from atoll.bindings.r2.ops import R2
    from atoll.bindings.r2.sites import R2Site

    assert isinstance(binding, R2)
    return R2Site(binding)


MANIFEST = Manifest(
    kind="r2",
    moved="atoll.bindings.r2.moving",
    make=make,
    cloudflare="atoll.bindings.r2.cloudflare",
    config="atoll.bindings.r2.config",
    type_name="R2Bucket",
    settings={
        "s3_host": BindingSetting(
            "",
            Facts(
                "Host on which the S3-compatible endpoint of R2 answers; `off` disables it.", shown="s3.<base domain>"
            ),
        ),
        "r2_public_domain": BindingSetting(
            "",
            Facts(
                "Domain below which public R2 buckets have their hosts; `off` makes none public.",
                shown="buckets.<base domain>",
            ),
        ),
        "r2_service": BindingSetting(
            "",
            Facts(
                "Address of an S3-compatible service that holds the contents of R2 objects, without the bucket.",
                shown="files in the data folder",
            ),
        ),
        "r2_service_bucket": BindingSetting("", Facts("Bucket in the service of `r2_service`; it must exist.")),
        "r2_service_prefix": BindingSetting("", Facts("Start of the names of all objects in that bucket.")),
        "r2_service_region": BindingSetting("us-east-1", Facts("Region by which requests to the service are signed.")),
        "r2_service_credentials": BindingSetting(
            "",
            Facts(
                "File with the access key of the service, in the format of ~/.aws/credentials.",
                shown="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment",
            ),
        ),
        "r2_service_keep_days": BindingSetting(
            7.0,
            Facts("Days for which the service keeps deleted contents, so that backups of that age restore whole."),
        ),
        "r2_bytes": BindingSetting(
            100_000 * MB, Facts("Maximum size of a tenant's R2 buckets, unless its quota sets another.", low=MB)
        ),
        "r2_objects": BindingSetting(
            10_000_000, Facts("Most objects in a tenant's R2 buckets, unless its quota sets another.", low=1)
        ),
    },
    quotas={
        "r2_buckets": BindingQuota("R2 buckets."),
        "r2_objects": BindingQuota("Objects in all its buckets.", setting="r2_objects"),
        "r2_bytes": BindingQuota(
            "Bytes of objects, their keys and metadata, and unfinished uploads.", setting="r2_bytes"
        ),
    },
    admin=admin,
    hosts=hosts,
    site=site,
    commands={
        "r2": CommandGroup(
            "atoll.bindings.r2.cli",
            "Make R2 buckets; store, read, list and delete objects.",
            phrases={
                r"\bGET /api/r2 lists\b": "`atoll r2 bucket list` lists",
                r"\bPOST /api/r2 creates\b": "`atoll r2 bucket create` creates",
                r"\bGET /api/r2-credentials lists\b": "`atoll r2 credentials list` lists",
                r"\bGET /api/r2/([^/\s]+)/lifecycle\b": r"`atoll r2 bucket lifecycle list \1`",
                r"\bGET /api/r2/([^/\s]+)/notifications\b": r"`atoll r2 bucket notification list \1`",
                r"\bGET /api/r2/([^/\s]+)/objects\b": r"`atoll r2 object list \1`",
                r"\badd \?force=true\b": "add --force",
            },
        ),
    },
    fixed_files=("r2/objects",),
    cached_files=("r2-unfinished", "r2-checked", "r2-owner"),
)
