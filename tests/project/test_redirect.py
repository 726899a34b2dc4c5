"""Configs that build tools make: what `.wrangler/deploy/config.json` names is built and deployed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from atoll.manifests.config_fields import FindingLevel
from atoll.project.build import Builder
from atoll.project.model import ProjectError
from atoll.project.read import read_project
from tests.project.conftest import Write

# As Vite's plugin writes it: every field, most of them empty
MADE = {
    "configPath": "/somewhere/wrangler.jsonc",
    "userConfigPath": "/somewhere/wrangler.jsonc",
    "topLevelName": "site",
    "definedEnvironments": [],
    "compatibility_date": "2026-01-01",
    "compatibility_flags": [],
    "jsx_factory": "React.createElement",
    "jsx_fragment": "React.Fragment",
    "rules": [{"type": "ESModule", "globs": ["**/*.js", "**/*.mjs"]}],
    "name": "site",
    "main": "index.js",
    "triggers": {},
    "vars": {"GREETING": "Hello"},
    "durable_objects": {"bindings": []},
    "workflows": [],
    "migrations": [],
    "exports": {},
    "kv_namespaces": [],
    "cloudchamber": {},
    "send_email": [],
    "queues": {"producers": [], "consumers": []},
    "hyperdrive": [],
    "logfwdr": {"bindings": []},
    "upload_source_maps": True,
    "python_modules": {"exclude": ["**/*.pyc"]},
    "dev": {"ip": "localhost", "local_protocol": "http", "upstream_protocol": "http", "enable_containers": True},
    "no_bundle": True,
}
MAIN = 'export default { async fetch() { return new Response((await import("./assets/lazy.js")).text); } };'
POINTER = '{"configPath": "../../dist/site/wrangler.json", "auxiliaryWorkers": []}'


def built_site(write: Write, **more: object) -> Path:
    return write(
        **{
            "wrangler.jsonc": '{"name": "site", "main": "src/index.tsx"}',
            "src/index.tsx": 'import "virtual:made-by-the-tool";',
            ".wrangler/deploy/config.json": POINTER,
            "dist/site/wrangler.json": json.dumps(MADE | more),
            "dist/site/index.js": MAIN,
            "dist/site/index.js.map": '{"version": 3, "sources": [], "mappings": ""}',
            "dist/site/assets/lazy.js": 'export const text = "late";',
            "dist/site/assets/computed.mjs": "export default 1;",
            "dist/site/assets/style.css": "h1 {}",
        }
    )


def test_the_config_of_a_build_tool_is_used_without_a_word(write: Write) -> None:
    project = read_project(built_site(write), as_built=True)
    assert (project.name, project.vars, project.findings) == ("site", {"GREETING": "Hello"}, [])
    with Builder(project) as builder:
        built = builder.build()
    assert built.main == "index.js"
    assert {module.path for module in built.modules} == {"index.js", "assets/lazy.js", "assets/computed.mjs"}
    maps = {module.path: bool(module.source_map) for module in built.modules}
    assert maps == {"index.js": True, "assets/lazy.js": False, "assets/computed.mjs": False}


def test_a_file_above_the_made_config_is_inside_the_project(write: Write) -> None:
    folder = built_site(write, main="../shared.js")
    (folder / "dist/shared.js").write_text("export default { fetch() {} };")
    with Builder(read_project(folder, as_built=True)) as builder:
        assert builder.build().main == "shared.js"
    folder = built_site(write, main="../../../outside.js")
    (folder.parent / "outside.js").write_text("export default {};")
    with Builder(read_project(folder, as_built=True)) as builder, pytest.raises(ProjectError, match="leads out of"):
        builder.build()


def test_a_folder_below_finds_it_and_a_named_config_goes_around_it(write: Write) -> None:
    folder = built_site(write)
    assert read_project(folder / "src", as_built=True).config == folder / "dist/site/wrangler.json"
    assert read_project(None, config=folder / "wrangler.jsonc", as_built=True).config == folder / "wrangler.jsonc"
    assert read_project(folder).config == folder / "wrangler.jsonc", "commands that do not build read the own config"


def test_a_config_without_one_of_the_project_is_found(write: Write) -> None:
    folder = built_site(write)
    (folder / "wrangler.jsonc").unlink()
    assert read_project(folder, as_built=True).name == "site"


def test_atoll_toml_comes_before_what_a_tool_made(write: Write) -> None:
    folder = built_site(write)
    (folder / "atoll.toml").write_text('name = "own"\nmain = "src/index.tsx"')
    assert read_project(folder, as_built=True).name == "own"


def test_a_config_that_changed_after_the_build_is_reported(write: Write) -> None:
    folder = built_site(write)
    later = (folder / "dist/site/wrangler.json").stat().st_mtime + 5
    os.utime(folder / "wrangler.jsonc", (later, later))
    (finding,) = read_project(folder, as_built=True).findings
    assert finding.level is FindingLevel.WARNING and "changed after the project was built" in finding.text


def test_another_environment_than_the_built_one_is_refused(write: Write) -> None:
    folder = built_site(write, targetEnvironment="staging")
    assert read_project(folder, "staging", as_built=True).name == "site"
    with pytest.raises(ProjectError, match="was built for the environment `staging`"):
        read_project(folder, "production", as_built=True)


@pytest.mark.parametrize(
    ("pointer", "message"),
    [("{}", "`configPath` is missing"), ('{"configPath": "gone.json"}', "which does not exist")],
)
def test_a_pointer_that_leads_nowhere_is_refused(write: Write, pointer: str, message: str) -> None:
    folder = built_site(write)
    (folder / ".wrangler/deploy/config.json").write_text(pointer)
    with pytest.raises(ProjectError, match=message) as caught:
        read_project(folder, as_built=True)
    assert "build the project again" in caught.value.hint


@pytest.mark.parametrize(
    ("config", "package", "more", "command"),
    [
        ("vite.config.ts", "@cloudflare/vite-plugin", {}, "npm run build"),
        ("vite.config.ts", "@cloudflare/vite-plugin", {"pnpm-lock.yaml": ""}, "pnpm run build"),
        ("open-next.config.ts", "@opennextjs/cloudflare", {}, "npx opennextjs-cloudflare build"),
    ],
)
def test_a_project_that_no_tool_has_built_yet_says_how(
    write: Write, config: str, package: str, more: dict[str, str], command: str
) -> None:
    about = {"scripts": {"build": "x build"}, "devDependencies": {package: "1"}}
    main = "src/index.ts" if "vite" in config else "made/worker.js"
    contents = {
        "wrangler.jsonc": json.dumps({"name": "a", "main": main}),
        config: "",
        "src/index.ts": "export default {};",
    }
    folder = write(**contents, **more, **{"package.json": json.dumps(about)})
    with (
        Builder(read_project(folder, as_built=True)) as builder,
        pytest.raises(ProjectError, match="there is no build yet") as caught,
    ):
        builder.build()
    assert command in caught.value.hint
