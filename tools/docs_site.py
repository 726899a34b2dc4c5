"""Hooks of mkdocs: files outside docs/ that pages link to become part of the site, below project/.

Pages link to each other as files of the repository, so that links work there too. The hooks rewrite each link for the
site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = "project/"  # the place of such files in the site
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")


def anchor(title: str, separator: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", separator)


def outside() -> list[str]:
    """Files that the site takes from outside docs/."""
    found = [ROOT / name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md")]
    found += [path for folder in ("deploy", "examples") for path in (ROOT / folder).rglob("*") if path.is_file()]
    found += [ROOT / "README.md", ROOT / "bench/results.md"]
    return [path.relative_to(ROOT).as_posix() for path in found if "node_modules" not in path.parts]


def in_site(path: str) -> str:
    """The place in the site of a file of the repository."""
    if (ROOT / path).is_dir() and (ROOT / path / "README.md").exists():
        path = posixpath.join(path, "README.md")
    return path.removeprefix("docs/") if path.startswith("docs/") else OUTSIDE + path


def in_repository(src_uri: str) -> str:
    return src_uri.removeprefix(OUTSIDE) if src_uri.startswith(OUTSIDE) else f"docs/{src_uri}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in outside():
        files.append(File.generated(config, OUTSIDE + path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    folder = posixpath.dirname(in_repository(page.file.src_uri))

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[1]))
        if not (ROOT / target).exists():
            return match[1]  # mkdocs reports it
        return posixpath.relpath(in_site(target), posixpath.dirname(page.file.src_uri) or ".")

    return LINK.sub(moved, markdown)
