"""Static assets from the command line: deploy, doctor, types and dev, over a real node."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from atoll.assets.rules import BadAssets
from atoll.bindings.assets.cli import content_of
from atoll.bindings.assets.folder import local_files
from atoll.cli.talk import Failed
from tests.cli.conftest import StartIn
from tests.cli.test_projects import run
from tests.running import Atoll

EXAMPLES = Path(__file__).parents[2] / "examples"


def site(folder: Path, name: str, more: str = "", main: str = "", **files: str) -> Path:
    """A project with assets in `public`."""
    (folder / "public").mkdir(parents=True, exist_ok=True)
    lines = [f'"name": "{name}", "compatibility_date": "2026-01-01", // as wrangler writes it']
    if main:
        lines.append('"main": "index.js",')
        (folder / "index.js").write_text(main)
    lines.append(f'"assets": {{ "directory": "./public", {more} }},')
    (folder / "wrangler.jsonc").write_text("\n".join(["{", *lines, "}"]))
    for path, content in files.items():
        (folder / "public" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "public" / path).write_text(content)
    return folder


def node_of(atoll: Atoll) -> dict[str, str]:
    return {"ATOLL_API": f"http://localhost:{atoll.port}"}


def test_only_changed_files_are_uploaded(atoll: Atoll, tmp_path: Path) -> None:
    folder = site(tmp_path, "cli-assets", **{"index.html": "one", "a/b.txt": "b", "_headers": "/*\n  X-A: 1\nwat\n"})
    # Other tests of this node may have stored the same contents: these are of this test alone.
    (folder / "public/index.html").write_text("one, of only changed files")
    (folder / "public/a/b.txt").write_text("b, of only changed files")
    first = run(folder, "deploy", **node_of(atoll))
    assert first.stdout == f"http://cli-assets.localhost:{atoll.port}/\n"
    assert "2 assets" in first.stderr and "2 to upload" in first.stderr
    assert "warning: _headers, line 3: " in first.stderr
    assert (atoll.get("cli-assets").text, atoll.get("cli-assets").headers["x-a"]) == ("one, of only changed files", "1")
    assert atoll.get("cli-assets", "/_headers").status == 404
    (folder / "public/index.html").write_text("two, of only changed files")
    assert "1 to upload" in run(folder, "deploy", **node_of(atoll)).stderr
    assert (atoll.get("cli-assets").text, atoll.get("cli-assets", "/a/b.txt").text) == (
        "two, of only changed files",
        "b, of only changed files",
    )
    run(folder, "rollback", "cli-assets", **node_of(atoll))
    assert atoll.get("cli-assets").text == "one, of only changed files"


def test_the_examples_do_what_their_readmes_say(atoll: Atoll) -> None:
    run(EXAMPLES / "static-site", "deploy", **node_of(atoll))
    assert "An atoll" in atoll.get("static-site").text
    assert atoll.get("static-site", "/docs").headers["location"] == "/docs/"
    assert atoll.get("static-site", "/manual").headers["location"] == "/docs/"
    gone = atoll.get("static-site", "/nowhere")
    assert (gone.status, gone.headers["x-content-type-options"]) == (404, "nosniff") and "only water" in gone.text
    run(EXAMPLES / "spa-api", "deploy", **node_of(atoll))
    page = atoll.get("spa-api").text
    assert "A single-page app" in page and atoll.get("spa-api", "/clock").text == page
    assert "T" in atoll.get("spa-api", "/api/time").json["time"]
    assert atoll.get("spa-api", "/api/page").json == {"status": 200, "characters": len(page)}


def test_types_and_doctor_know_assets(atoll: Atoll, tmp_path: Path) -> None:
    worker = "export default { fetch: (request, env) => env.FILES.fetch(request) }"
    folder = site(tmp_path, "cli-known", '"binding": "FILES"', worker, **{"index.html": "x", "_redirects": "/a\n"})
    run(folder, "types", **node_of(atoll))
    assert "FILES: Fetcher;" in (folder / "worker-configuration.d.ts").read_text()
    checks = json.loads(run(folder, "doctor", "--no-sandbox", "--json", **node_of(atoll)).stdout)
    texts = [check["text"] for check in checks if check["about"] == "project"]
    assert "1 assets in ./public" in texts and any("_redirects:1" in text for text in texts)


def test_values_and_folders_that_are_refused(atoll: Atoll, tmp_path: Path) -> None:
    for number, (more, said) in enumerate((
        ('"html_handling": "wat"', "html_handling"),
        ('"run_worker_first": ["!/a"]', "Only negative"),
        ('"base_path": "/x"', "base_path"),
    )):  # fmt: skip
        folder = site(tmp_path / str(number), "cli-wrong", more, **{"index.html": "x"})
        ran = run(folder, "deploy", code=1, **node_of(atoll))
        assert said in ran.stderr and "Traceback" not in ran.stderr
    empty = run(site(tmp_path / "empty", "cli-wrong"), "deploy", code=1, **node_of(atoll))
    assert "has no files" in empty.stderr and "hint:" in empty.stderr
    (tmp_path / "empty/public").rmdir()
    assert "does not exist" in run(tmp_path / "empty", "deploy", code=1, **node_of(atoll)).stderr
    assert atoll.get("cli-wrong").status == 404


def paths(folder: Path) -> list[str]:
    return [file.path for file in local_files(folder)]


def test_which_files_of_a_folder_are_assets(tmp_path: Path) -> None:
    for name in ("index.html", ".well-known/x", ".env", ".git/config", "node_modules/a.js", "a.map", "keep.map", "d/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    assert paths(tmp_path) == ["/.well-known/x", "/a.map", "/d/x", "/index.html", "/keep.map"]
    (tmp_path / ".assetsignore").write_text("*.map\n!keep.map\n/d\n!.env\n")
    assert paths(tmp_path) == ["/.env", "/.well-known/x", "/index.html", "/keep.map"]


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    folder, secret = tmp_path / "public", tmp_path / "secret"
    folder.mkdir()
    secret.mkdir()
    (secret / "key").write_text("s")
    (folder / "in.txt").write_text("x")
    (folder / "link.txt").symlink_to("in.txt")
    (folder / "loop").symlink_to(".")
    assert paths(folder) == ["/in.txt", "/link.txt"]
    for name, target in (("file", secret / "key"), ("dir", secret), ("gone", folder / "nowhere")):
        (folder / name).symlink_to(target)
        with pytest.raises(BadAssets, match="is a link to") as refused:
            local_files(folder)
        assert refused.value.hint
        (folder / name).unlink()


def test_names_and_kinds_of_files_that_are_refused(tmp_path: Path) -> None:
    for name, said in ((b"a\xffb", "not UTF-8"), (b"a\\b", "backslash"), (b"_worker.js", "would be public")):
        place = os.path.join(os.fsencode(tmp_path), name)
        Path(os.fsdecode(place)).write_text("x")
        with pytest.raises(BadAssets, match=said):
            local_files(tmp_path)
        os.unlink(place)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadAssets, match="neither a file nor a folder"):
        local_files(tmp_path)


def test_a_file_that_changes_during_the_upload_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("before")
    files = local_files(tmp_path)
    (tmp_path / "a.txt").write_text("after!")
    with pytest.raises(Failed, match="was changed: it no longer has the hash"):
        list(content_of(files, lambda size: None))
    (tmp_path / "a.txt").unlink()
    with pytest.raises(Failed, match="cannot be read any more"):
        list(content_of(files, lambda size: None))


def test_dev_serves_the_folder_live(start_in: StartIn, tmp_path: Path) -> None:
    worker = """export default { async fetch(request, env) {
      return new Response(`w ${await (await env.A.fetch("http://x/")).text()}`);
    } }"""
    folder = site(
        tmp_path, "dev-site", '"binding": "A", "run_worker_first": ["/api/*"]', worker, **{"index.html": "one"}
    )
    (tmp_path / "outside").write_text("secret")
    (folder / "public/link").symlink_to(tmp_path / "outside")
    dev = start_in(folder)

    def text(path: str) -> str:
        return dev.get(path)[1]

    assert (text(""), text("api/x")) == ("one", "w one")
    (folder / "public/index.html").write_text("two, and longer")
    (folder / "public/new.html").write_text("new")
    (folder / "public/_headers").write_text("/new\n  X-Live: yes\n")
    assert (text(""), text("new"), text("api/x")) == ("two, and longer", "new", "w two, and longer")
    assert text("link").startswith("w ") and text("_headers").startswith("w ")
    (folder / "public/new.html").unlink()
    assert text("new").startswith("w ")


def test_dev_of_a_project_without_a_worker(start_in: StartIn, tmp_path: Path) -> None:
    dev = start_in(
        site(tmp_path, "dev-files", '"not_found_handling": "single-page-application"', **{"index.html": "app"})
    )
    assert (dev.get(), dev.get("any/path")) == ((200, "app"), (200, "app"))
