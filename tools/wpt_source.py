"""Fetches web-platform-tests by package name: they are part of Debian's source package of Firefox.

It keeps only the folders that `make wpt` runs, in build/wpt. `apt-get` uses its own folders there, so it changes
nothing in the system's package lists and needs no root.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

PACKAGE = "firefox-esr"
INSIDE = "*/testing/web-platform/tests"
SUPPORT = ("resources", "common", "interfaces", "tools", "xhr/resources", "cookies/resources", "wpt", "wpt.py")
SOURCES = """\
Types: deb-src
URIs: {mirror}
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
ARCHIVE = re.compile(r"^'(\S+)' (\S+\.orig\.tar\.xz) (\d+) SHA256:([0-9a-f]{64})$", re.MULTILINE)
MIRROR = "http://deb.debian.org/debian"
HINT = "hint: git clone --depth 1 https://github.com/web-platform-tests/wpt, then make wpt WPT=wpt"


def version_of(root: Path) -> str:
    """The version of the suite, if it is known."""
    told = root / "SOURCE"
    return told.read_text().strip() if told.is_file() else "a checkout of web-platform-tests"


def fetch(root: Path, folders: tuple[str, ...]) -> None:
    """Puts the suite into `root`. Ends the program with a hint if that fails."""
    if shutil.which("apt-get") is None or shutil.which("xz") is None:
        sys.exit(f"error: no web-platform-tests in {root}, and no apt-get and xz to fetch them with\n{HINT}")
    work = root.with_name(root.name + ".part")
    shutil.rmtree(work, ignore_errors=True)
    print(f"Fetching web-platform-tests: Debian's source package {PACKAGE} (about 700 MB, once)", flush=True)
    try:
        archive = download(work)
        print(f"Unpacking {archive.name} into {root}", flush=True)
        unpack(archive, work / "wpt", (*SUPPORT, *folders))
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {' '.join(map(str, error.cmd[:2]))} failed\n{HINT}")
    (work / "wpt/SOURCE").write_text(f"Debian's {archive.name.removesuffix('.orig.tar.xz').replace('_', ' ')}\n")
    (work / "wpt").replace(root)
    shutil.rmtree(work)


def download(work: Path) -> Path:
    """Downloads the archive with the sources; apt knows its address and its digest."""
    for folder in ("sources", "lists/partial", "archives/partial"):
        (work / folder).mkdir(parents=True)
    (work / "sources/wpt.sources").write_text(SOURCES.format(mirror=MIRROR))
    places = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": work / "sources",
        "Dir::State::Lists": work / "lists",
        "Dir::Cache": work,
        "APT::Sandbox::User": "",
    }
    apt = ["apt-get", "-q", *(f"-o{name}={value}" for name, value in places.items())]
    subprocess.run([*apt, "update"], check=True, stdout=subprocess.DEVNULL)
    listing = [*apt, "source", "--print-uris", PACKAGE]
    listed = subprocess.run(listing, check=True, capture_output=True, text=True).stdout
    url, name, size, digest = found = next(iter(ARCHIVE.findall(listed)), ("", "", "", ""))
    if not all(found):
        raise subprocess.CalledProcessError(1, ["apt-get", "source"])
    urllib.request.urlretrieve(url, work / name)
    with (work / name).open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != digest:
            sys.exit(f"error: {url} differs from Debian's list ({size} bytes, SHA-256 {digest})")
    return work / name


def unpack(archive: Path, into: Path, folders: tuple[str, ...]) -> None:
    """Unpacks the folders without their parent path. A folder that this version lacks is left out."""
    into.mkdir()
    wanted = [f"{INSIDE}/{folder}" for folder in folders]
    with subprocess.Popen(["xz", "-dc", "-T0", archive], stdout=subprocess.PIPE) as xz:
        tar = ["tar", "-x", "--wildcards", "--strip-components=4", "-C", str(into), *wanted]
        done = subprocess.run(tar, stdin=xz.stdout, stderr=subprocess.DEVNULL, check=False)
    if not (into / "resources/testharness.js").is_file():
        raise subprocess.CalledProcessError(done.returncode, ["tar", "-x"])
