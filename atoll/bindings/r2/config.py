"""`r2_buckets` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import REMOTE, ConfigField, Reading, Subfield
from atoll.workers import worker_name


class R2Bucket(Struct):
    """An entry of `r2_buckets`."""

    binding: str
    bucket_name: str = ""


def read(buckets: list[R2Bucket], reading: Reading) -> None:
    for each in buckets:
        reading.bind("r2", each.binding, bucket=each.bucket_name or bucket_of(reading.project, each.binding))


def bucket_of(project: str, binding: str) -> str:
    """What wrangler calls a bucket without a name."""
    return worker_name(f"{project}-{binding}").replace("_", "-")


FIELDS = (
    ConfigField(
        name="r2_buckets",
        shape=list[R2Bucket],
        read=read,
        subfields={
            "r2_buckets[].preview_bucket_name": Subfield("`atoll dev` has data of its own"),
            "r2_buckets[].jurisdiction": Subfield("the data is on this node"),
            "r2_buckets[].local_dev": Subfield("`atoll dev` needs no credentials"),
            "r2_buckets[].remote": REMOTE,
        },
    ),
)
