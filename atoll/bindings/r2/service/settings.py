"""Which service holds the contents of R2, and the access key for it. Only operators see either."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from atoll.config import Settings
from atoll.egress.client import Origin
from atoll.errors import StartError

KEY, SECRET, TOKEN = "aws_access_key_id", "aws_secret_access_key", "aws_session_token"
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
PREFIX = re.compile(r"[A-Za-z0-9!_.*'()/-]{0,200}")


class AccessKey(NamedTuple):
    id: str
    secret: str
    token: str = ""  # of temporary credentials

    def __repr__(self) -> str:
        return f"AccessKey({self.id})"


class ServiceSettings(NamedTuple):
    origin: Origin
    host: str  # the header
    base: str  # the path before the bucket; "" for most services
    bucket: str
    prefix: str
    region: str
    key: AccessKey
    keep_seconds: int = 0  # for which contents stay after the last object that used them

    def path(self, name: str) -> str:
        """The path of an object, or of the bucket itself for ""."""
        return f"{self.base}/{self.bucket}" + (f"/{quote(self.prefix + name, safe='-_.~/')}" if name else "")

    def __str__(self) -> str:
        return f"{'https' if self.origin.tls else 'http'}://{self.host}{self.base}/{self.bucket}/{self.prefix}"


def read_service(settings: Settings, environment: Mapping[str, str] = os.environ) -> ServiceSettings | None:
    """The service that the settings name; None if contents are in files. StartError if they are incomplete."""
    endpoint = str(settings.value("r2_service"))
    if not endpoint:
        return None
    parts = urlsplit(endpoint)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1 or parts.query or parts.username:
        raise StartError(
            f"r2_service is {endpoint!r}, which is not the address of a service",
            "give the address without the bucket, such as https://s3.eu-central-1.amazonaws.com",
            "r2_service",
        )
    is_tls = parts.scheme == "https"
    bucket, prefix = str(settings.value("r2_service_bucket")), str(settings.value("r2_service_prefix"))
    if not BUCKET.fullmatch(bucket):
        raise StartError(
            f"r2_service_bucket is {bucket!r}, which is not the name of a bucket",
            "create a bucket in the service for this node, and name it here",
            "r2_service_bucket",
        )
    if not PREFIX.fullmatch(prefix) or prefix.startswith("/"):
        raise StartError(
            f"r2_service_prefix is {prefix!r}",
            "use letters, digits and -_.!*'()/ only, and no slash at the start",
            "r2_service_prefix",
        )
    return ServiceSettings(
        Origin(is_tls, parts.hostname, port or (443 if is_tls else 80)),
        parts.netloc,
        parts.path.rstrip("/"),
        bucket,
        prefix,
        str(settings.value("r2_service_region")),
        _access_key(str(settings.value("r2_service_credentials")), environment),
        int(float(settings.value("r2_service_keep_days")) * 86_400),
    )


def _access_key(file: str, environment: Mapping[str, str]) -> AccessKey:
    if not file:
        found = {name: environment.get(name.upper(), "") for name in (KEY, SECRET, TOKEN)}
        where = "the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set"
    else:
        found = _of_file(Path(file))
        where = f"{file} has no [default] section with {KEY} and {SECRET}"
    if not found.get(KEY) or not found.get(SECRET):
        raise StartError(
            f"the access key of the S3 service for R2 is missing: {where}",
            "name a file in the format of ~/.aws/credentials, or set the variables",
            "r2_service_credentials",
        )
    return AccessKey(found[KEY], found[SECRET], found.get(TOKEN, ""))


def _of_file(path: Path) -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(path.expanduser().read_text())
    except OSError as error:
        raise StartError(
            f"the credentials of the S3 service cannot be read: {path}: {error.strerror}",
            "check the path and its permissions",
            "r2_service_credentials",
        ) from None
    except (configparser.Error, UnicodeDecodeError):
        return {}
    return dict(parser["default"]) if parser.has_section("default") else {}
