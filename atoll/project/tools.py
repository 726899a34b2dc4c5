"""The tool that builds a project for Workers: Vite with Cloudflare's plugin, or a framework.

What such a tool makes is deployed, not the sources: `main` of the config may be a module that only the tool can
resolve. The tool is recognised by its config file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from atoll.project.model import Project, Tool

SCRIPT_ENDINGS: Final = (".js", ".mjs", ".ts", ".mts", ".cjs", ".cts")
# The name of a config file -> the tool, and what the file or package.json must name
TOOLS: Final = {
    "open-next.config": ("OpenNext", "@opennextjs/cloudflare"),
    "astro.config": ("Astro", "@astrojs/cloudflare"),
    "nuxt.config": ("Nuxt", "nuxt"),
    "nitro.config": ("Nitro", "nitro"),
    "svelte.config": ("SvelteKit", "@sveltejs/adapter-cloudflare"),
    "vite.config": ("Vite", "@cloudflare/vite-plugin"),
}
OPEN_NEXT: Final = "npx opennextjs-cloudflare build"
RUNNERS: Final = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}


def tool_of(folder: Path) -> Tool | None:
    """The tool that builds the project in this folder."""
    about = _package_in(folder)
    scripts, declared = about.get("scripts"), _declared(about)
    for name, (tool, package) in TOOLS.items():
        config = next((path for end in SCRIPT_ENDINGS if (path := folder / (name + end)).is_file()), None)
        if config is None or not any(each == package or each.startswith(f"{package}pack") for each in declared):
            continue
        if tool == "OpenNext":
            return Tool(tool, OPEN_NEXT, folder)
        command = scripts.get("build") if isinstance(scripts, dict) else None
        return Tool(tool, f"{_runner(folder)} run build" if command else f"npx {tool.lower()} build", folder)
    return None


def needs_build(project: Project, tool: Tool) -> bool:
    """Whether there is nothing yet that could be deployed. Vite's plugin always makes a config (redirect.py)."""
    return project.home is None and (tool.name == "Vite" or (project.main is not None and not project.main.is_file()))


def _package_in(folder: Path) -> dict[str, object]:
    try:
        about = json.loads((folder / "package.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


def _declared(about: dict[str, object]) -> set[str]:
    fields = (about.get(name) for name in ("dependencies", "devDependencies"))
    return {name for field in fields if isinstance(field, dict) for name in field}


def _runner(folder: Path) -> str:
    above = (folder, *folder.parents)
    return next((runner for name, runner in RUNNERS.items() if any((place / name).is_file() for place in above)), "npm")
