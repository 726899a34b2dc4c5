"""Sends the assets of a project to a node: the manifest first, then only the files that the node does not have."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from atoll.assets.headers_file import Warned, parse_headers
from atoll.assets.manifest import SentFile, SentManifest, manifest_id, text_of
from atoll.assets.redirects_file import parse_redirects
from atoll.assets.rules import BadAssets
from atoll.bindings.assets.config import ConfigAssets
from atoll.bindings.assets.folder import HEADERS_FILE, REDIRECTS_FILE, LocalFile, local_files, rule_text
from atoll.cli.talk import Failed, paint, say
from atoll.manifests.config_fields import Finding, FindingLevel
from atoll.manifests.project_files import PackedFiles, ProjectFiles

if TYPE_CHECKING:
    from atoll.cli.client import Client
    from atoll.project.model import Project
    from atoll.workers import Version

UPLOAD_BYTES: Final = 8 << 20  # of one request; a larger file is sent alone
UPLOAD_FILES: Final = 1_000
PIECE: Final = 256 << 10
CHANGED: Final = "deploy again when the build is done"


def folder_of(project: Project, wanted: ConfigAssets) -> Path:
    """The folder of the files. Raises Failed if it is not in the project's repository."""
    from atoll.project.border import Border
    from atoll.project.model import ProjectError

    folder = (project.folder / wanted.directory).absolute()
    try:
        Border(project).check_entry(folder)
    except ProjectError as error:
        raise Failed(str(error), error.hint) from None
    return folder


def read_site(folder: Path) -> tuple[list[LocalFile], str, str]:
    """All assets of a folder, and the texts of _headers and _redirects. Prints warnings. Raises Failed."""
    try:
        files = local_files(folder)
        headers, redirects = rule_text(folder, HEADERS_FILE), rule_text(folder, REDIRECTS_FILE)
    except BadAssets as error:
        raise Failed(str(error), error.hint) from None
    for name, warned in warnings_of(headers, redirects):
        say(f"{paint('warning:', fg='yellow')} {name}, line {warned.line}: {warned.text}")
    return files, headers, redirects


def send(client: Client, project: Project, wanted: ConfigAssets) -> dict[str, Any]:
    """Upload what is missing. Returns the field of the deploy."""
    files, headers, redirects = read_site(folder_of(project, wanted))
    return {**field_of(wanted, headers, redirects), "manifest": send_all(client, files)}


def field_of(wanted: ConfigAssets, headers: str, redirects: str) -> dict[str, Any]:
    """The field of the deploy, without the id of the manifest."""
    return {
        "html_handling": wanted.html_handling,
        "not_found_handling": wanted.not_found_handling,
        "run_worker_first": wanted.run_worker_first,
        "headers": headers,
        "redirects": redirects,
    }


def send_all(client: Client, files: Sequence[LocalFile], hint: str = CHANGED) -> str:
    """Name all files to the node and send those that it lacks. Returns the id of their manifest."""
    sent = {file.path: {"hash": file.hash, "size": file.size} for file in files}
    answer = client.post("/api/assets/manifests", {"files": sent})
    missing = set(answer["missing"])
    lacking = list({file.hash: file for file in files if file.hash in missing}.values())
    total = sum(file.size for file in files)
    counted = "1 asset" if len(files) == 1 else f"{len(files):,} assets"
    say(f"{counted}, {total / 1024:,.1f} KB: {len(lacking):,} to upload")
    if lacking:
        upload(client, lacking, hint)
    return str(answer["manifest"])


def pack(project: Project, wanted: ConfigAssets, out: Path) -> PackedFiles:
    """Prepare the assets for a bundle in `out`."""
    from atoll.project.carried import FILES as KEPT
    from atoll.project.out import MODULES

    folder = folder_of(project, wanted)
    real, target = Path(os.path.realpath(folder)), Path(os.path.realpath(out))
    if target.is_relative_to(real) or any(real.is_relative_to(target / name) for name in (KEPT, MODULES)):
        hint = "name another folder with --out"
        raise Failed(f"the bundle would be written into the folder of the assets, {folder}", hint)
    files, headers, redirects = read_site(folder)
    text = text_of(SentManifest({file.path: SentFile(file.hash, file.size) for file in files})).encode()
    value = {"manifest": manifest_id(text), **field_of(wanted, headers, redirects)}
    return PackedFiles(value, partial(write_packed, files, text))


def write_packed(files: Sequence[LocalFile], text: bytes, folder: Path) -> None:
    """Copy the files into a bundle, each content once. A file that has changed meanwhile is refused."""
    from atoll.project.carried import FILES as KEPT
    from atoll.project.carried import LIST

    (folder / KEPT).mkdir(exist_ok=True)
    for file in {file.hash: file for file in files}.values():
        digest = hashlib.sha256()
        try:
            with open(file.place, "rb") as source, (folder / KEPT / file.hash).open("wb") as copy:
                while piece := source.read(PIECE):
                    digest.update(piece)
                    copy.write(piece)
        except OSError as error:
            raise Failed(f"{file.place} cannot be copied into the bundle: {error.strerror}", "build again") from None
        if digest.hexdigest() != file.hash:
            raise Failed(f"{file.place} changed while it was copied into the bundle", "build again")
    (folder / LIST).write_bytes(text)


def send_packed(client: Client, folder: Path, value: Any) -> Any:
    """Upload the assets of a bundle that the node does not have. Returns the field of the deploy."""
    from atoll.project.carried import AGAIN, carried_by
    from atoll.project.carried import FILES as KEPT
    from atoll.project.model import ProjectError

    try:
        carried = carried_by(folder, value)
    except ProjectError as error:
        raise Failed(str(error), error.hint) from None
    if carried is None:
        return value  # of a node that has the files
    files = [LocalFile(file.path, str(folder / KEPT / file.hash), file.size, file.hash) for file in carried]
    return {**value, "manifest": send_all(client, files, AGAIN)}


def upload(client: Client, files: Sequence[LocalFile], hint: str = CHANGED) -> None:
    """Send files in requests of a few megabytes. What has arrived stays if a later one fails."""
    size = sum(file.size for file in files)
    with click.progressbar(length=size, label="uploading", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        for batch in batches(files):
            length = sum(40 + file.size for file in batch)
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(length)}
            client.send("PUT", "/api/assets/files", content_of(batch, bar.update, hint), headers).read()


def batches(files: Sequence[LocalFile]) -> Iterator[list[LocalFile]]:
    batch: list[LocalFile] = []
    size = 0
    for file in files:
        if batch and (size + file.size > UPLOAD_BYTES or len(batch) >= UPLOAD_FILES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    yield batch


def content_of(batch: Sequence[LocalFile], tell: Any, hint: str = CHANGED) -> Iterator[bytes]:
    """The body of an upload. A file that has changed since it was hashed is never sent."""
    for file in batch:
        try:
            content = Path(file.place).read_bytes()
        except OSError as error:
            raise Failed(f"{file.place} cannot be read any more: {error.strerror}", "deploy again") from None
        if hashlib.sha256(content).hexdigest() != file.hash:
            raise Failed(f"{file.place} was changed: it no longer has the hash {file.hash}", hint)
        yield bytes.fromhex(file.hash) + file.size.to_bytes(8)
        for at in range(0, len(content), PIECE):
            piece = content[at : at + PIECE]
            yield piece
            tell(len(piece))


def warnings_of(headers: str, redirects: str) -> Iterator[tuple[str, Warned]]:
    for name, found in ((HEADERS_FILE, parse_headers(headers)[1]), (REDIRECTS_FILE, parse_redirects(redirects)[1])):
        for warned in found:
            yield name, warned


def check(project: Project, wanted: ConfigAssets) -> tuple[str, list[Finding]]:
    """For `atoll doctor`: what a deploy would send, and what it would refuse."""
    try:
        folder = folder_of(project, wanted)
        files = local_files(folder)
        texts = rule_text(folder, HEADERS_FILE), rule_text(folder, REDIRECTS_FILE)
    except (BadAssets, Failed) as error:
        return "", [Finding(FindingLevel.ERROR, "assets.directory", str(error), error.hint)]
    findings = [
        Finding(FindingLevel.WARNING, f"{name}:{warned.line}", warned.text) for name, warned in warnings_of(*texts)
    ]
    return f"{len(files):,} assets in {wanted.directory}", findings


def live(project: Project, wanted: ConfigAssets, has_worker: bool) -> Callable[[Version], None]:
    """For `atoll dev`: the files as they are in the folder at each request."""
    from atoll.bindings.assets.live import LiveTable

    return LiveTable(folder_of(project, wanted), wanted, project, has_worker=has_worker).attach


FILES = ProjectFiles("assets", send, pack, send_packed, check, live)
