"""Where the files of assets are: `static/<tenant>/<2 hex>/<hash>`, with `.gz` and `.br` beside it for its copies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

FOLDER: Final = (
    "static"  # after atoll.db in the order of a backup: a copied database never names a file that is not there
)
INCOMING: Final = ".incoming"  # files that are not complete yet; emptied at a start
COPIES: Final = ("", ".gz", ".br")


class FilePlaces:
    def __init__(self, data: Path) -> None:
        self.root = data / FOLDER
        self.incoming = self.root / INCOMING

    def tenant(self, tenant: str) -> Path:
        return self.root / tenant

    def of(self, tenant: str, digest: str) -> str:
        """The place of a file. `digest` is hex, from the database or checked."""
        return f"{self.root}/{tenant}/{digest[:2]}/{digest}"

    def unlink(self, tenant: str, digest: str) -> None:
        place = self.of(tenant, digest)
        for ending in COPIES:
            try:
                os.unlink(place + ending)
            except FileNotFoundError:
                pass
