"""Checksums that S3 clients send, by AWS's own implementation: what does not match is not stored."""

from __future__ import annotations

import base64
import hashlib
import io
import random
import zlib
from typing import Any

import pytest
from awscrt import checksums

from atoll.bindings.r2.s3.checksums import KINDS, Checksums
from atoll.bindings.r2.s3.faults import S3Fault
from tests.bindings.r2.test_s3 import Client, names, refused, s3

__all__ = ["names", "s3"]  # fixtures

DATA = random.Random(7).randbytes(300_001)
PLACE: dict[str, Any] = {"Bucket": "s3-tests", "Key": "summed"}


def encoded(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


# parameter of boto3 -> digest
RIGHT = {
    "CRC32": zlib.crc32(DATA).to_bytes(4, "big"),
    "CRC32C": checksums.crc32c(DATA).to_bytes(4, "big"),
    "CRC64NVME": checksums.crc64nvme(DATA).to_bytes(8, "big"),
    "SHA1": hashlib.sha1(DATA).digest(),
    "SHA256": hashlib.sha256(DATA).digest(),
}


@pytest.mark.parametrize("kind", RIGHT)
def test_a_checksum_is_verified_in_a_header_and_after_the_body(s3: Client, kind: str) -> None:
    s3.put_object(**PLACE, Body=DATA, **{f"Checksum{kind}": encoded(RIGHT[kind])})
    wrong = bytes([RIGHT[kind][0] ^ 1]) + RIGHT[kind][1:]
    refusal = refused(s3.put_object, **PLACE, Body=b"other", **{f"Checksum{kind}": encoded(wrong)})
    assert refusal == (400, "BadDigest")
    s3.put_object(**PLACE, Body=io.BytesIO(DATA), ChecksumAlgorithm=kind)  # boto3 computes it, and sends it last
    assert s3.get_object(**PLACE)["Body"].read() == DATA, "what did not match was not stored"


def test_parts_are_verified_and_a_checksum_of_the_whole_object_does_not_disturb(s3: Client) -> None:
    upload = s3.create_multipart_upload(**PLACE, ChecksumAlgorithm="CRC64NVME", ChecksumType="FULL_OBJECT")["UploadId"]
    part = {**PLACE, "UploadId": upload, "PartNumber": 1}
    assert refused(s3.upload_part, **part, Body=b"other", ChecksumCRC64NVME=encoded(RIGHT["CRC64NVME"]))[1] == (
        "BadDigest"
    )
    tag = s3.upload_part(**part, Body=DATA, ChecksumCRC64NVME=encoded(RIGHT["CRC64NVME"]))["ETag"]
    done = {"Parts": [{"PartNumber": 1, "ETag": tag}]}
    s3.complete_multipart_upload(
        **PLACE, UploadId=upload, MultipartUpload=done, ChecksumCRC64NVME=encoded(RIGHT["CRC64NVME"]),
        ChecksumType="FULL_OBJECT",
    )  # fmt: skip
    assert s3.get_object(**PLACE)["Body"].read() == DATA


@pytest.mark.parametrize("kind", KINDS)
async def test_pieces_give_the_checksum_of_the_whole(kind: str) -> None:
    crcs = {"crc32c": RIGHT["CRC32C"], "crc64nvme": RIGHT["CRC64NVME"], "crc32": RIGHT["CRC32"]}
    digest = crcs.get(kind) or hashlib.new(kind, DATA).digest()
    sums = Checksums({f"x-amz-checksum-{kind}": encoded(digest), "x-amz-checksum-type": "FULL_OBJECT"})
    await sums.prepare()
    for first in range(0, len(DATA), 70_000):
        sums.update(DATA[first : first + 70_000])
    sums.finish()
    sums.update(b"more")
    with pytest.raises(S3Fault, match=kind.upper()):
        sums.finish()


async def test_what_cannot_be_verified_is_refused() -> None:
    with pytest.raises(S3Fault, match="not known"):
        Checksums({"x-amz-checksum-crc99": "AA=="})
    with pytest.raises(S3Fault, match="not known"):
        Checksums({"x-amz-trailer": "x-amz-checksum-crc99"})
    promised = Checksums({"x-amz-trailer": "x-amz-checksum-crc32c"})
    await promised.prepare()
    with pytest.raises(S3Fault, match="does not have x-amz-checksum-crc32c"):
        promised.finish()
    with pytest.raises(S3Fault, match="does not announce"):
        promised.expect("x-amz-checksum-sha1", "AA==")
