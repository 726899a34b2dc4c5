"""A named entry script overrides `main` and nothing else: dev, doctor, build and deploy use the project's config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import StartIn
from tests.cli.test_projects import run

DATE = "2026-01-01"
TOML = f"""
name = "shop"
main = "src/gone.ts"
compatibility_date = "{DATE}"
kv_namespaces = [{{ binding = "CACHE", id = "shared" }}]
[vars]
GREETING = "from the config"
[limits]
cpu_ms = 20
[env.staging.vars]
GREETING = "from staging"
"""
JSONC = f"""{{ // the same
  "name": "shop", "compatibility_date": "{DATE}", "limits": {{ "cpu_ms": 20 }},
  "vars": {{ "GREETING": "from the config" }},
  "kv_namespaces": [{{ "binding": "CACHE", "id": "shared" }}],
}}"""
WORKER = "export default { fetch: (_, env) => new Response(`${env.GREETING} ${typeof env.CACHE} ${env.SECRET}`) };"
CONFIGS = {"wrangler.toml": TOML, "wrangler.jsonc": JSONC, "atoll.toml": TOML}


def project(folder: Path, config: str = "wrangler.toml") -> Path:
    (folder / "src").mkdir(parents=True)
    (folder / config).write_text(CONFIGS[config])
    (folder / "src/index.ts").write_text(WORKER.replace("(_, env)", "(_: unknown, env: any)"))
    return folder


def settings_of(said: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said)
    return {key: found[key] for key in ("name", "env", "bindings", "limits")}


EXPECTED = {
    "name": "shop",
    "env": {"GREETING": "from the config"},
    "bindings": [{"type": "kv", "name": "CACHE", "namespace": "shared"}],
    "limits": {"cpu_ms": 20},
}


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("command", [("build",), ("deploy", "--dry-run")], ids=["build", "deploy"])
def test_a_named_entry_keeps_the_settings_of_its_project(tmp_path: Path, command: tuple[str, ...], config: str) -> None:
    folder = project(tmp_path / "app", config)
    for cwd, entry in ((folder, "src/index.ts"), (folder / "src", "index.ts"), (tmp_path, "app/src/index.ts")):
        ran = run(cwd, *command, entry, "--json")
        assert settings_of(ran.stdout) == EXPECTED
        assert "index.ts replaces `main` of " in ran.stderr and config in ran.stderr


def test_doctor_names_the_config_and_the_entry(tmp_path: Path) -> None:
    folder = project(tmp_path / "app")
    said = run(folder, "doctor", "src/index.ts", "--no-sandbox", "--api", "http://localhost:1").stdout
    assert f"shop, from {folder}/wrangler.toml, entry {folder}/src/index.ts, as of {DATE}" in said
    assert "env.CACHE: kv shared" in said and "builds:" in said


def test_dev_of_a_named_entry_has_variables_bindings_and_secrets(start_in: StartIn, tmp_path: Path) -> None:
    folder = project(tmp_path / "app")
    dev = start_in(folder, "src/index.ts", **{".dev.vars": "SECRET=hidden"})
    assert dev.seen[-1]["workers"][0]["config"] == str(folder / "wrangler.toml")
    assert dev.get() == (200, "from the config object hidden")
    dev.save("wrangler.toml", TOML.replace("from the config", "changed"))
    dev.wait_for("reloaded")
    assert dev.get() == (200, "changed object hidden")
    dev.stop()
    dev = start_in(folder, "src/index.ts", "--env", "staging", "--var", "SECRET=given", "--name", "mine")
    assert dev.seen[-1]["workers"][0]["name"] == "mine"
    assert dev.get() == (200, "from staging undefined given")


def test_an_explicit_config_wins_over_the_one_beside_the_entry(tmp_path: Path) -> None:
    folder = project(tmp_path / "app")
    (tmp_path / "other.toml").write_text(f'name = "other"\ncompatibility_date = "{DATE}"\nvars = {{ A = "1" }}\n')
    ran = run(tmp_path, "build", "app/src/index.ts", "-c", "other.toml", "--var", "B=2", "--name", "third", "--json")
    assert settings_of(ran.stdout) | {"limits": {}} == {
        "name": "third", "env": {"A": "1", "B": "2"}, "bindings": [], "limits": {},
    }  # fmt: skip
    said = run(folder, "build", "src", "-c", "../other.toml", code=1).stderr
    assert "both name a project" in said and "hint: with --config, PATH must be a script or left out" in said
    assert "there is no " in run(folder, "build", "-c", "none.toml", code=1).stderr
    assert (
        "--config is given more than once"
        in run(folder, "build", "-c", "wrangler.toml", "-c", "../other.toml", code=1).stderr
    )
    assert "--var is 'X'" in run(folder, "build", "src/index.ts", "--var", "X", code=1).stderr
    assert "CACHE, which is a binding" in run(folder, "build", "src/index.ts", "--var", "CACHE=1", code=1).stderr


def test_a_script_without_a_config_is_a_project_by_itself(tmp_path: Path) -> None:
    (tmp_path / "hello.js").write_text(WORKER)
    ran = run(tmp_path, "build", "hello.js", "--json")
    assert settings_of(ran.stdout)["name"] == "hello" and "replaces" not in ran.stderr


def test_a_config_above_the_repository_is_of_another_project(tmp_path: Path) -> None:
    project(tmp_path / "app")
    repository = tmp_path / "app/vendor/tool"
    (repository / "src").mkdir(parents=True)
    (repository / "src/tool.js").write_text(WORKER)
    assert settings_of(run(repository, "build", "src/tool.js", "--json").stdout)["name"] == "shop"
    (repository / ".git").mkdir()
    assert settings_of(run(repository, "build", "src/tool.js", "--out", "out", "--json").stdout)["name"] == "tool"
