"""How a binding sends files of a project to a node, before the deploy that uses them.

The command line calls it, so the module that has FILES may import from `cli/`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from atoll.manifests.config_fields import Finding
from atoll.workers import Version


class PackedFiles(NamedTuple):
    """Files on their way into a bundle."""

    value: Any  # of the deploy
    write: Callable[[Path], None]  # writes them to the folder of the bundle


class ProjectFiles(NamedTuple):
    field: str  # of the config and of the deploy
    send: Callable[[Any, Any, Any], Any]  # (Client, Project, value of the config) -> value of the deploy
    pack: Callable[[Any, Any, Path], PackedFiles]  # (Project, value of the config, folder of the bundle)
    send_packed: Callable[[Any, Path, Any], Any]  # (Client, folder of the bundle, value) -> value of the deploy
    # (Project, value of the config) -> what would be sent, in words, and findings about it
    check: Callable[[Any, Any], tuple[str, list[Finding]]]
    # For `atoll dev`: (Project, value of the config, has_worker) -> gives a version the files as they are in the folder
    live: Callable[[Any, Any, bool], Callable[[Version], None]]
