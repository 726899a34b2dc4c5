"""What a node sends as a bundle is written to one new folder, whole and checked, or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from atoll.project.model import ProjectError
from atoll.project.pulled import write_pulled

CODE = b"export default {}"


def archive(
    *files: tuple[str, bytes], modules: object = None, kind: bytes = tarfile.REGTYPE, **more: object
) -> io.BytesIO:
    listed = modules
    if listed is None:
        digest = hashlib.sha256(CODE).hexdigest()
        listed = [{"path": name.removeprefix("modules/"), "kind": "esm", "sha256": digest} for name, _ in files]
    manifest = {"format": "atoll-bundle-v1", "name": "x", "main": "w.js", "modules": listed, **more}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, content in (("manifest.json", json.dumps(manifest).encode()), *files):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if name != "manifest.json":
                info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info, io.BytesIO(content))
    raw.seek(0)
    return raw


def everything_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_bundle_is_written_as_it_was_built(tmp_path: Path) -> None:
    write_pulled(archive(("modules/w.js", CODE), ("modules/lib/a.js", CODE)), tmp_path / "out")
    assert (tmp_path / "out/modules/lib/a.js").read_bytes() == CODE
    assert everything_in(tmp_path) == [
        "out", "out/manifest.json", "out/modules", "out/modules/lib", "out/modules/lib/a.js", "out/modules/w.js",
    ]  # fmt: skip
    (tmp_path / "empty").mkdir()
    write_pulled(archive(("modules/w.js", CODE)), tmp_path / "empty")
    assert (tmp_path / "empty/manifest.json").exists()


@pytest.mark.parametrize(
    "path",
    ["../evil.js", "/tmp/evil.js", "a/../../evil.js", "..", "", "a//b.js", "./w.js", "a\\b.js", "c:evil.js", "a\0b"],
)
def test_a_path_that_leaves_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    modules = [{"path": path, "kind": "esm", "sha256": hashlib.sha256(CODE).hexdigest()}]
    with pytest.raises(ProjectError):
        write_pulled(archive((f"modules/{path}".replace("\0", ""), CODE), modules=modules), tmp_path / "out")
    assert everything_in(tmp_path) == []


@pytest.mark.parametrize("name", ["../evil.js", "/tmp/evil.js", "modules/../../evil.js", "modules/other.js", "w.js"])
def test_a_file_that_the_manifest_does_not_list_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ProjectError, match="unexpected file"):
        write_pulled(archive((name, CODE), modules=[]), tmp_path / "out")
    assert everything_in(tmp_path) == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_links_and_other_kinds_of_files_are_refused(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(ProjectError):
        write_pulled(archive(("modules/w.js", b""), kind=kind), tmp_path / "out")
    assert everything_in(tmp_path) == []


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no tar",
        archive(("modules/w.js", CODE)).read()[:1600],
        archive(("modules/w.js", CODE + b"!")).read(),
        archive(("modules/w.js", CODE), ("modules/w.js", CODE)).read(),
        archive(("modules/a", CODE), ("modules/a/b", CODE)).read(),
        archive(modules=[{"path": "w.js", "kind": "esm", "sha256": ""}]).read(),
        archive(modules=7).read(),
        archive(modules=[7]).read(),
        archive(format="another", modules=[]).read(),
    ],
)
def test_an_incomplete_or_changed_bundle_leaves_nothing(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(ProjectError):
        write_pulled(io.BytesIO(raw), tmp_path / "out")
    assert everything_in(tmp_path) == []


def test_a_folder_with_files_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "out")
    for folder in ("out", "link", "out/mine"):
        with pytest.raises(ProjectError, match="not an empty folder"):
            write_pulled(archive(("modules/w.js", CODE)), tmp_path / folder)
    assert everything_in(tmp_path) == ["link", "out", "out/mine"]


def with_files(*contents: tuple[str, bytes], listed: bytes) -> io.BytesIO:
    """A bundle of one file of static assets, with the list that the test gives."""
    module = {"path": "w.js", "kind": "esm", "sha256": hashlib.sha256(CODE).hexdigest()}
    assets = {"manifest": hashlib.sha256(listed).hexdigest()}
    return archive(("modules/w.js", CODE), ("files.sha256", listed), *contents, modules=[module], assets=assets)


RIGHT = hashlib.sha256(b"right").hexdigest()
LISTED = f"{RIGHT} 5 /index.html\n".encode()


def test_static_assets_are_written_by_their_hash(tmp_path: Path) -> None:
    write_pulled(with_files((f"files/{RIGHT}", b"right"), listed=LISTED), tmp_path / "out")
    assert (tmp_path / "out/files" / RIGHT).read_bytes() == b"right"
    assert (tmp_path / "out/files.sha256").read_bytes() == LISTED


@pytest.mark.parametrize(
    ("contents", "listed"),
    [
        ([(f"files/{RIGHT}", b"wrong")], LISTED),
        ([(f"files/{RIGHT}", b"right and more")], LISTED),
        ([("files/../../x", b"right")], LISTED),
        ([], LISTED),
        ([(f"files/{RIGHT}", b"right")], b"../../x 5 /index.html\n"),
        ([(f"files/{RIGHT}", b"right")], f"{RIGHT} 5 /a/../b\n".encode()),
        ([(f"files/{RIGHT}", b"right")], b"no list"),
        ([(f"files/{RIGHT}", b"right")], b"\xff"),
    ],
)
def test_static_assets_that_do_not_fit_leave_nothing(
    tmp_path: Path, contents: list[tuple[str, bytes]], listed: bytes
) -> None:
    with pytest.raises(ProjectError):
        write_pulled(with_files(*contents, listed=listed), tmp_path / "out")
    assert everything_in(tmp_path) == []
