"""The hints of `atoll dev` for the most common mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import StartIn

CONFIG = 'name = "app"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n'
JSON = '{ "name": "app", "main": "index.js", "compatibility_date": "2026-01-01" }'
LOOP = "export default { fetch() { for (;;); } };"


@pytest.mark.parametrize(
    ("files", "words", "hint"),
    [
        ({"atoll.toml": CONFIG}, (), "write [limits] cpu_ms = 100 into atoll.toml"),
        ({"wrangler.jsonc": JSON}, (), 'write "limits": { "cpu_ms": 100 } into wrangler.jsonc'),
        ({}, ("index.js",), "write [limits] cpu_ms = 100 into an atoll.toml beside the script"),
    ],
    ids=["toml", "json", "script"],
)
def test_a_call_over_its_cpu_limit_gets_a_hint_with_the_setting(
    start_in: StartIn, tmp_path: Path, files: dict[str, str], words: tuple[str, ...], hint: str
) -> None:
    dev = start_in(tmp_path / "app", *words, **files, **{"index.js": LOOP})
    status, page = dev.get(accept="text/plain")
    assert status == 503 and hint in page
    call = dev.wait_for("call")
    assert call["outcome"] == "exceededCpu" and hint in call["exception"]["message"]


def test_the_setting_in_the_hint_works(start_in: StartIn, tmp_path: Path) -> None:
    config = CONFIG + "[limits]\ncpu_ms = 400\n"
    dev = start_in(tmp_path / "app", **{"atoll.toml": config, "index.js": LOOP})
    assert "may use 400 ms" in dev.get(accept="text/plain")[1]
    assert dev.wait_for("call")["cpu_ms"] >= 400


def test_a_missing_package_shows_npm_install_until_it_is_installed(start_in: StartIn, tmp_path: Path) -> None:
    worker = 'import { word } from "words";\nexport default { fetch: () => new Response(word) };'
    about = '{ "dependencies": { "words": "^1" } }'
    folder = tmp_path / "app"
    dev = start_in(folder, **{"atoll.toml": CONFIG, "index.js": worker, "package.json": about})
    failed = next(event for event in dev.seen if event["event"] == "build_failed")
    assert failed["hint"] == "npm install" and 'Could not resolve "words"' in failed["message"]
    package = folder / "node_modules/words"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{ "name": "words", "main": "w.js" }')
    (package / "w.js").write_text('export const word = "there";')
    dev.save("index.js", worker + "\n")
    dev.wait_for("reloaded")
    assert dev.get() == (200, "there")
