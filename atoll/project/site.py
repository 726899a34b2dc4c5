"""The manifest of a Workers Site: which key of `__STATIC_CONTENT` has the content of a file.

A key is the path with a hash in it, as with wrangler, so that what a worker caches under it never changes.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path, PurePosixPath
from typing import Final

from atoll.project.model import Project

MANIFEST_MODULE: Final = "__STATIC_CONTENT_MANIFEST"


def site_manifest(project: Project) -> bytes | None:
    """JSON of path -> key; None if the project has no site."""
    if not any(binding.get("as_content") for binding in project.bindings):
        return None
    folder = project.folder / next(iter(project.files.values())).directory
    keys = {path.relative_to(folder).as_posix(): key for path, key in _keys(folder)}
    return json.dumps(keys, sort_keys=True).encode()


def _keys(folder: Path) -> list[tuple[Path, str]]:
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if not path.is_file():
                continue
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:10]
            shown = PurePosixPath(path.relative_to(folder).as_posix())
            found.append((path, str(shown.with_name(f"{shown.stem}.{digest}{shown.suffix}"))))
    return found
