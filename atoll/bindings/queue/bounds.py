"""Bounds that both halves of the binding check. Written from bounds.toml: run `make wire`."""

from typing import Final

MAX_DELAY: Final = 86400
