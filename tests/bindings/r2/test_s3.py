"""The S3 endpoint of R2, with boto3 against a real node: objects, lists, parts, links, and what is refused."""

from __future__ import annotations

import hashlib
import http.client
import io
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.running import Answer, Atoll

LARGE = bytes(range(256)) * (48 << 10)  # 12 MiB: two parts of boto3
Client = Any  # boto3 makes its classes when they are needed


@pytest.fixture(scope="module", autouse=True)
def names() -> Iterator[None]:
    """Names below localhost are this machine, also where the resolver does not know that."""
    patch = pytest.MonkeyPatch()
    resolve = socket.getaddrinfo

    def local(host: Any, *args: Any, **more: Any) -> Any:
        return resolve("127.0.0.1" if str(host).endswith(".localhost") else host, *args, **more)

    patch.setattr(socket, "getaddrinfo", local)
    yield
    patch.undo()


def keys_of(atoll: Atoll, tenant: str = "default", **body: Any) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "X-Atoll-Tenant": tenant}
    import json

    made = atoll.request("POST", f"localhost:{atoll.port}", "/api/r2-credentials", json.dumps(body), headers)
    assert made.status == 201, made.text
    found: dict[str, str] = made.json
    return found


def client_of(atoll: Atoll, keys: dict[str, str], **config: Any) -> Client:
    return boto3.client(
        "s3", endpoint_url=f"http://s3.localhost:{atoll.port}", region_name="auto",
        aws_access_key_id=keys["access_key_id"], aws_secret_access_key=keys["secret_access_key"],
        config=Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}, **config),
    )  # fmt: skip


@pytest.fixture(scope="module")
def s3(atoll: Atoll) -> Iterator[Client]:
    made = client_of(atoll, keys_of(atoll, name="tests"))
    if "s3-tests" not in [each["Name"] for each in made.list_buckets()["Buckets"]]:  # by another module
        made.create_bucket(Bucket="s3-tests")
    yield made
    made.close()


def refused(act: Callable[..., Any], **arguments: Any) -> tuple[int, str]:
    with pytest.raises(ClientError) as caught:
        act(**arguments)
    response: Any = caught.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


def ask(atoll: Atoll, method: str, url: str, body: bytes | None = None, **headers: str) -> Answer:
    parts = urlsplit(url)
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return atoll.request(method, f"s3.localhost:{atoll.port}", f"{parts.path}?{parts.query}", body, fields)


def test_an_object_is_put_read_and_deleted(s3: Client) -> None:
    place = {"Bucket": "s3-tests", "Key": "dir/ü +&?.txt"}
    put = s3.put_object(
        **place, Body=b"content", ContentType="text/x", CacheControl="no-store", Metadata={"by": "me"},
        StorageClass="STANDARD_IA",
    )  # fmt: skip
    md5 = f'"{hashlib.md5(b"content").hexdigest()}"'
    assert put["ETag"] == md5
    got = s3.get_object(**place)
    assert got["Body"].read() == b"content" and got["ContentLength"] == 7 and got["ContentType"] == "text/x"
    assert (got["ETag"], got["Metadata"], got["CacheControl"]) == (md5, {"by": "me"}, "no-store")
    head = s3.head_object(**place)
    assert (head["ContentLength"], head["StorageClass"], head["ETag"]) == (7, "STANDARD_IA", md5)
    part = s3.get_object(**place, Range="bytes=1-3")
    assert part["Body"].read() == b"ont" and part["ContentRange"] == "bytes 1-3/7"
    assert s3.get_object(**place, IfMatch=md5)["ContentLength"] == 7
    assert refused(s3.get_object, **place, IfMatch='"x"') == (412, "PreconditionFailed")
    assert refused(s3.get_object, **place, IfNoneMatch=md5)[0] == 304
    assert refused(s3.put_object, **place, Body=b"", IfNoneMatch="*") == (412, "PreconditionFailed")
    assert refused(s3.get_object, **place, Range="bytes=7-") == (416, "InvalidRange")
    s3.copy_object(Bucket="s3-tests", Key="copy", CopySource=place)
    assert s3.get_object(Bucket="s3-tests", Key="copy")["Metadata"] == {"by": "me"}
    s3.delete_object(**place)
    assert refused(s3.get_object, **place) == (404, "NoSuchKey")
    assert refused(s3.head_object, **place)[0] == 404
    many = s3.delete_objects(Bucket="s3-tests", Delete={"Objects": [{"Key": "copy"}, {"Key": "none"}]})
    assert [each["Key"] for each in many["Deleted"]] == ["copy", "none"]
    s3.put_object(Bucket="s3-tests", Key="empty", Body=b"")
    assert s3.get_object(Bucket="s3-tests", Key="empty")["Body"].read() == b""
    s3.delete_object(Bucket="s3-tests", Key="empty")


def test_a_tree_is_uploaded_and_listed_in_pages(s3: Client, tmp_path: Path) -> None:
    for name in ("a.txt", "b/1.txt", "b/2.txt", "c d/ü.txt", "z.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    s3.create_bucket(Bucket="s3-tree")
    for path in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        s3.upload_file(str(path), "s3-tree", path.relative_to(tmp_path).as_posix())
    keys = ["a.txt", "b/1.txt", "b/2.txt", "c d/ü.txt", "z.txt"]
    for kind in ("list_objects_v2", "list_objects"):
        pages = list(s3.get_paginator(kind).paginate(Bucket="s3-tree", PaginationConfig={"PageSize": 2}))
        assert [each["Key"] for page in pages for each in page["Contents"]] == keys and len(pages) == 3
        grouped = list(
            s3.get_paginator(kind).paginate(Bucket="s3-tree", Delimiter="/", PaginationConfig={"PageSize": 1})
        )
        assert [each["Prefix"] for page in grouped for each in page.get("CommonPrefixes", [])] == ["b/", "c d/"]
        assert [each["Key"] for page in grouped for each in page.get("Contents", [])] == ["a.txt", "z.txt"]
    below = s3.list_objects_v2(Bucket="s3-tree", Prefix="b/", StartAfter="b/1.txt")
    assert [each["Key"] for each in below["Contents"]] == ["b/2.txt"] and below["KeyCount"] == 1
    for key in keys:
        body = io.BytesIO()
        s3.download_fileobj("s3-tree", key, body)
        assert body.getvalue().decode() == key
    assert refused(s3.delete_bucket, Bucket="s3-tree") == (409, "BucketNotEmpty")


def test_large_objects_go_in_parts(s3: Client) -> None:
    s3.upload_fileobj(io.BytesIO(LARGE), "s3-tests", "large", ExtraArgs={"ContentType": "x/y"})
    head = s3.head_object(Bucket="s3-tests", Key="large")
    assert head["ContentLength"] == len(LARGE) and head["ETag"].endswith('-2"') and head["ContentType"] == "x/y"
    body = io.BytesIO()
    s3.download_fileobj("s3-tests", "large", body)
    assert body.getvalue() == LARGE
    place = {"Bucket": "s3-tests", "Key": "parts"}
    upload_id = s3.create_multipart_upload(**place)["UploadId"]
    upload = {**place, "UploadId": upload_id}
    first = s3.upload_part(**upload, PartNumber=1, Body=LARGE[: 5 << 20])
    copied = s3.upload_part_copy(
        **upload, PartNumber=2, CopySource={"Bucket": "s3-tests", "Key": "large"}, CopySourceRange="bytes=0-9"
    )["CopyPartResult"]
    assert [each["Key"] for each in s3.list_multipart_uploads(Bucket="s3-tests")["Uploads"]] == ["parts"]
    assert [(each["PartNumber"], each["Size"]) for each in s3.list_parts(**upload)["Parts"]] == [(1, 5 << 20), (2, 10)]
    wrong = {"Parts": [{"PartNumber": 1, "ETag": '"0"'}]}
    assert refused(s3.complete_multipart_upload, **upload, MultipartUpload=wrong) == (400, "InvalidPart")
    parts = [{"PartNumber": 1, "ETag": first["ETag"]}, {"PartNumber": 2, "ETag": copied["ETag"]}]
    s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    assert s3.get_object(**place, Range="bytes=-12")["Body"].read() == LARGE[(5 << 20) - 2 : 5 << 20] + LARGE[:10]
    other = s3.create_multipart_upload(**place)["UploadId"]
    s3.abort_multipart_upload(**place, UploadId=other)
    assert refused(s3.upload_part, **place, UploadId=other, PartNumber=1, Body=b"") == (404, "NoSuchUpload")


def test_links_work_until_they_expire_and_only_as_signed(atoll: Atoll, s3: Client) -> None:
    place = {"Bucket": "s3-tests", "Key": "linked ü"}
    put = s3.generate_presigned_url("put_object", Params=place, ExpiresIn=60)
    assert ask(atoll, "PUT", put, b"by a link").status == 200
    get = s3.generate_presigned_url("get_object", Params={**place, "ResponseContentType": "a/b"}, ExpiresIn=60)
    answer = ask(atoll, "GET", get)
    assert answer.body == b"by a link" and answer.headers["content-type"] == "a/b"
    for method, url, code in (
        ("PUT", get, "SignatureDoesNotMatch"),
        ("GET", get.replace("linked", "other"), "SignatureDoesNotMatch"),
        ("GET", get.replace("a%2Fb", "a%2Fc"), "SignatureDoesNotMatch"),
        ("GET", get.replace("Expires=60", "Expires=61"), "SignatureDoesNotMatch"),
        ("GET", get.replace("Expires=60", "Expires=9999999"), "AuthorizationQueryParametersError"),
        ("GET", get.replace("X-Amz-Date=20", "X-Amz-Date=19"), "AuthorizationHeaderMalformed"),
        ("GET", "/s3-tests/linked%20%C3%BC", "AccessDenied"),
    ):
        answer = ask(atoll, method, url, b"" if method == "PUT" else None)
        assert f"<Code>{code}</Code>" in answer.text, url
    added = ask(atoll, "PUT", put, b"x", x_amz_meta_role="admin")
    assert "headers present in the request which were not signed" in added.text


def test_who_may_not_is_refused(atoll: Atoll, s3: Client) -> None:
    assert atoll.control("POST", "/api/tenants", {"name": "s3-other"}).status == 201
    other = client_of(atoll, keys_of(atoll, "s3-other"))
    s3.put_object(Bucket="s3-tests", Key="mine", Body=b"mine")
    assert refused(other.get_object, Bucket="s3-tests", Key="mine") == (404, "NoSuchBucket")
    assert other.list_buckets()["Buckets"] == []
    other.create_bucket(Bucket="s3-tests")
    assert refused(other.get_object, Bucket="s3-tests", Key="mine") == (404, "NoSuchKey")
    source = {"Bucket": "s3-tests", "Key": "mine"}
    assert refused(other.copy_object, Bucket="s3-tests", Key="stolen", CopySource=source) == (404, "NoSuchKey")
    reader = client_of(atoll, keys_of(atoll, bucket="s3-tests", read_only=True))
    assert reader.get_object(Bucket="s3-tests", Key="mine")["Body"].read() == b"mine"
    for act in (reader.put_object, reader.delete_object):
        assert refused(act, Bucket="s3-tests", Key="mine") == (403, "AccessDenied")
    s3.create_bucket(Bucket="s3-secret")
    assert refused(reader.list_objects_v2, Bucket="s3-secret") == (403, "AccessDenied")
    assert [each["Name"] for each in reader.list_buckets()["Buckets"]] == ["s3-tests"]
    keys = keys_of(atoll)
    wrong = client_of(atoll, {**keys, "secret_access_key": "x" * 64})
    assert refused(wrong.list_buckets) == (403, "SignatureDoesNotMatch")
    gone = client_of(atoll, keys)
    assert gone.list_buckets()["Buckets"]
    assert atoll.control("DELETE", f"/api/r2-credentials/{keys['access_key_id']}").status == 204
    assert refused(gone.list_buckets) == (403, "InvalidAccessKeyId")
    assert "secret" not in atoll.control("GET", "/api/r2-credentials").text
    for client in (other, reader, wrong, gone):
        client.close()


def test_what_r2_does_not_have_is_said(atoll: Atoll, s3: Client) -> None:
    assert refused(s3.get_bucket_versioning, Bucket="s3-tests") == (501, "NotImplemented")
    assert refused(s3.get_bucket_acl, Bucket="s3-tests") == (501, "NotImplemented")
    assert refused(s3.get_bucket_cors, Bucket="s3-tests") == (404, "NoSuchCORSConfiguration")
    assert refused(s3.create_bucket, Bucket="s3-tests") == (409, "BucketAlreadyOwnedByYou")
    assert refused(s3.create_bucket, Bucket="Wrong_Name") == (400, "InvalidBucketName")
    assert refused(s3.put_object, Bucket="s3-tests", Key="k" * 1025, Body=b"") == (400, "KeyTooLongError")
    assert s3.get_bucket_location(Bucket="s3-tests")["LocationConstraint"] is None
    s3.head_bucket(Bucket="s3-tests")
    assert refused(s3.head_bucket, Bucket="s3-none")[0] == 404
    answer = ask(atoll, "GET", "/s3-tests")
    assert answer.status == 403 and answer.text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>')
    assert ask(atoll, "GET", "/api/workers").status == 403, "the control API is not on this host"
    control = http.client.HTTPConnection("127.0.0.1", atoll.port)
    control.request("GET", "/s3-tests", headers={"Host": f"localhost:{atoll.port}"})
    assert control.getresponse().status == 404, "and S3 is not on the control host"
    control.close()
    taken = atoll.control("POST", "/api/workers", {"name": "s3", "script": "export default { fetch() {} }"})
    assert taken.status in (400, 409), "no worker gets this host"
