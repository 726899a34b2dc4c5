"""Deploys of assets over the API of a real node, as a client without the command line would make them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from tests.running import Answer, Atoll


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def packed(contents: Iterable[bytes]) -> bytes:
    """The body of an upload."""
    return b"".join(hashlib.sha256(each).digest() + len(each).to_bytes(8) + each for each in contents)


def manifest_of(files: Mapping[str, bytes]) -> dict[str, Any]:
    return {"files": {path: {"hash": sha256(content), "size": len(content)} for path, content in files.items()}}


def add_manifest(atoll: Atoll, files: Mapping[str, bytes]) -> Any:
    answer = atoll.control("POST", "/api/assets/manifests", manifest_of(files))
    assert answer.status == 200, answer.text
    return answer.json


def upload(atoll: Atoll, body: bytes, **headers: str) -> Answer:
    return atoll.request("PUT", f"localhost:{atoll.port}", "/api/assets/files", body, headers)


def deploy_site(atoll: Atoll, name: str, files: Mapping[str, bytes], script: str | None = None, **rules: Any) -> Any:
    """Upload what is missing, and deploy."""
    fields = {key: rules.pop(key) for key in ("bindings", "compatibility_date", "routes") if key in rules}
    found = add_manifest(atoll, files)
    missing = {sha256(content): content for content in files.values() if sha256(content) in found["missing"]}
    if missing:
        answer = upload(atoll, packed(missing.values()))
        assert answer.status == 200, answer.text
    return atoll.deploy(name, script, assets={"manifest": found["manifest"], **rules}, **fields)
