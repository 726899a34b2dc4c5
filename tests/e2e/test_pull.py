"""A version is downloaded with its hashes, deployed again as it was, and given only to those who may deploy it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
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


def site_project(folder: Path, name: str) -> Path:
    site = folder / name
    (site / "public/docs").mkdir(parents=True)
    (site / "public/index.html").write_text("first")
    (site / "public/same.html").write_text("first")
    (site / "public/docs/größe.txt").write_bytes(bytes(range(256)) * 3000)
    (site / "public/empty.txt").touch()
    (site / "public/404.html").write_text("gone")
    (site / "public/_headers").write_text("/*\n  X-Kept: yes\n")
    (site / "public/_redirects").write_text("/old /docs/gr%C3%B6%C3%9Fe.txt 301\n")
    config = {"name": name, "assets": {"directory": "public", "not_found_handling": "404-page"}}
    (site / "wrangler.jsonc").write_text(json.dumps(config))
    return site


def assert_is_the_site(atoll: Atoll, name: str) -> None:
    home = atoll.get(name)
    assert (home.text, home.headers["x-kept"]) == ("first", "yes")
    assert atoll.get(name, "/same").text == "first" and atoll.get(name, "/empty.txt").body == b""
    assert atoll.get(name, "/docs/gr%C3%B6%C3%9Fe.txt").body == bytes(range(256)) * 3000
    moved, gone = atoll.get(name, "/old"), atoll.get(name, "/none")
    assert (moved.status, moved.headers["location"]) == (301, "/docs/gr%C3%B6%C3%9Fe.txt")
    assert (gone.status, gone.text) == (404, "gone")


def test_a_site_is_pulled_and_deployed_to_another_node(
    atoll: Atoll, new_atoll: Callable[..., Atoll], tmp_path: Path
) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    site = site_project(tmp_path, "pulled-site")
    run(site, "deploy", **node)
    (site / "public/index.html").write_text("second")
    run(site, "deploy", **node)
    run(tmp_path, "pull", "pulled-site", "--version", "1", **node)
    folder = tmp_path / "pulled-site-1"
    assert len(list((folder / "files").iterdir())) == 4  # each content once
    other = new_atoll(engines=1)
    elsewhere = {"ATOLL_API": f"http://localhost:{other.port}"}
    run(tmp_path, "deploy", "pulled-site-1", **elsewhere)
    assert_is_the_site(other, "pulled-site")
    again = run(tmp_path, "deploy", "pulled-site-1/manifest.json", **node)  # nothing is sent to where it comes from
    assert "5 assets" in again.stderr and "0 to upload" in again.stderr
    assert_is_the_site(atoll, "pulled-site")


def test_a_bundle_with_assets_is_built_and_deployed(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    site = site_project(tmp_path, "built-site")
    for _ in range(2):  # a build replaces the one before
        run(site, "build", "--out", "bundle")
    (site / "public/index.html").write_text("not built")
    run(tmp_path, "deploy", "built-site/bundle", **node)
    assert_is_the_site(atoll, "built-site")
    into = run(site, "build", "--out", "public/bundle", code=1)
    assert "into the folder of the assets" in into.stderr and "hint: " in into.stderr
    (site / "bundle/files/notes.txt").write_text("mine")
    strange = run(site, "build", "--out", "bundle", code=1)
    assert "was not made by" in strange.stderr and (site / "bundle/files/notes.txt").exists()


def test_a_bundle_whose_assets_were_changed_is_refused(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    site = site_project(tmp_path, "bent-site")
    (site / "public/index.html").write_text("of the bent site")
    run(site, "build", "--out", "bundle")
    digest = hashlib.sha256(b"of the bent site").hexdigest()
    content, listed = site / "bundle/files" / digest, site / "bundle/files.sha256"
    content.write_text("of the b3nt site")
    assert "no longer has the hash" in run(tmp_path, "deploy", "bent-site/bundle", code=1, **node).stderr
    content.unlink()
    assert "cannot be read" in run(tmp_path, "deploy", "bent-site/bundle", code=1, **node).stderr
    content.write_text("of the bent site")
    listed.write_text(listed.read_text().replace("/index.html", "/other.html"))
    assert "its sha256 differs" in run(tmp_path, "deploy", "bent-site/bundle", code=1, **node).stderr
    assert atoll.control("GET", "/api/workers/bent-site").status == 404
