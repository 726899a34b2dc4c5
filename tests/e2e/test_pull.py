"""A version is downloaded with its hashes, deployed again as it was, and given only to those who may deploy it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from pathlib import Path

from tests.cli.test_projects import run
from tests.running import Atoll

MAIN = """import text from "./lib/words.txt"; import data from "./blob.bin";
export default { fetch(request, env) { return new Response(`${text} ${data.byteLength} ${env.N} ${env.KEY ?? "none"}`); } };"""


def deploy(atoll: Atoll, name: str) -> bytes:
    blob = bytes(range(256)) * 4000  # several pieces
    modules = {"main.js": MAIN, "lib/words.txt": "wörds", "blob.bin": {"base64": base64.b64encode(blob).decode()}}
    atoll.deploy(
        name, modules=modules, main="main.js", env={"N": 1}, secrets={"KEY": "secret"}, source_maps={"main.js": MAP}
    )
    return blob


MAP = json.dumps({"version": 3, "sources": ["main.ts"], "mappings": "AAAA", "sourcesContent": ["x" * 300_000]})


def test_a_version_is_pulled_and_deployed_again_as_it_was(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    blob = deploy(atoll, "pulled")
    atoll.deploy("pulled", env={"N": 2})
    ran = run(tmp_path, "pull", "pulled", "--version", "1", **node)
    assert ran.stdout == "pulled-1\n" and "3 modules" in ran.stderr
    folder = tmp_path / "pulled-1"
    assert (folder / "modules/blob.bin").read_bytes() == blob
    assert (folder / "modules/lib/words.txt").read_text("utf-8") == "wörds"
    assert (folder / "modules/main.js.map").read_text() == MAP
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (
        manifest["env"] == {"N": 1} and manifest["required_secrets"] == ["KEY"] and "secret" not in str(manifest["env"])
    )
    assert "secret" not in (folder / "manifest.json").read_text().replace("required_secrets", "")
    run(tmp_path, "deploy", "pulled-1", "--name", "pulled-again", **node)
    assert atoll.get("pulled-again").text == f"wörds {len(blob)} 1 none"
    again = run(tmp_path, "pull", "pulled", "--version", "1", code=1, **node)
    assert "not an empty folder" in again.stderr and "hint: " in again.stderr
    assert json.loads(run(tmp_path, "pull", "pulled", "--json", **node).stdout)["version"] == 2
    assert "hint: " in run(tmp_path, "pull", "pulled", "--version", "9", code=1, **node).stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith((".", "pulled"))) == [
        "pulled-1",
        "pulled-2",
    ]


def test_the_bundle_has_the_hash_of_every_module_and_is_noted(atoll: Atoll) -> None:
    deploy(atoll, "hashed")
    answer = atoll.control("GET", "/api/workers/hashed/versions/1/bundle")
    assert answer.status == 200 and answer.headers["content-type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        files = {name: tar.extractfile(name).read() for name in tar.getnames()}  # type: ignore[union-attr]
    for entry in json.loads(files["manifest.json"])["modules"]:
        assert hashlib.sha256(files[f"modules/{entry['path']}"]).hexdigest() == entry["sha256"]
    audit = atoll.control("GET", "/api/audit").json
    assert any(line["action"] == "version.download" and line["target"] == "hashed" for line in audit["audit"])


def test_only_callers_who_may_deploy_get_the_source(atoll: Atoll) -> None:
    deploy(atoll, "guarded")
    host = f"localhost:{atoll.port}"
    for scope, status in (("read", 403), ("deploy", 200)):
        made = atoll.control("POST", "/api/tokens", {"name": f"pull-{scope}", "scopes": [scope]}).json
        headers = {"Authorization": f"Bearer {made['token']}"}
        answer = atoll.request("GET", host, "/api/workers/guarded/versions/1/bundle", headers=headers)
        assert answer.status == status


def test_a_pulled_version_with_assets_names_its_files_and_keeps_its_rules(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    site = tmp_path / "site"
    (site / "public").mkdir(parents=True)
    (site / "public/index.html").write_text("first")
    (site / "public/_headers").write_text("/\n  X-Kept: yes\n")
    (site / "wrangler.jsonc").write_text('{"name": "pulled-site", "assets": {"directory": "public"}}')
    run(site, "deploy", **node)
    (site / "public/index.html").write_text("second")
    run(site, "deploy", **node)
    assert "stay on the node" in run(tmp_path, "pull", "pulled-site", "--version", "1", **node).stderr
    run(tmp_path, "deploy", "pulled-site-1", **node)
    answer = atoll.get("pulled-site")
    assert (answer.text, answer.headers["X-Kept"]) == ("first", "yes")
