"""Modules that are taken as they are: no_bundle, rules by folder, computed imports, CommonJS."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atoll.project.build import Builder
from atoll.project.built import Built
from atoll.project.bundle import deploy_body
from atoll.project.model import ProjectError
from atoll.project.read import read_project
from atoll.workers import ModuleKind
from tests.project.conftest import Write


def build(folder: Path) -> Built:
    with Builder(read_project(folder)) as builder:
        return builder.build()


def kinds(built: Built) -> dict[str, str]:
    return {module.path: str(module.kind) for module in built.modules}


def config(**fields: object) -> str:
    return json.dumps({"name": "a", "main": "src/index.js", "compatibility_date": "2026-01-01", **fields})


def test_no_bundle_takes_what_is_imported_while_it_runs(write: Write) -> None:
    main = 'const a = await import("./a.js"); const b = () => import("./gone.js"); export default { fetch() {} };'
    files = {"src/index.js": main, "src/a.js": 'import "./b.mjs";', "src/b.mjs": "process.env.NODE_ENV"}
    built = build(write(**files, **{"wrangler.json": config(no_bundle=True)}))
    assert kinds(built) == {"index.js": "esm", "a.js": "esm", "b.mjs": "esm"}, "named from the folder of main"
    assert built.modules[[module.path for module in built.modules].index("index.js")].source == main.encode()


def test_rules_by_folder_make_modules_of_files_that_nothing_imports(write: Write) -> None:
    rules = [
        {"type": "Text", "globs": ["src/pages/*.js"], "fallthrough": True},
        {"type": "Text", "globs": ["**/*.md"]},
        {"type": "ESModule", "globs": ["src/lang/**/*.js"]},
        {"type": "Data", "globs": ["**/*.png"]},
    ]
    files = {
        "src/index.js": "export default { fetch: (r) => import(r.url) };",
        "src/pages/home.js": "not(a script",
        "src/lang/deep/de.js": "export default 1;",
        "src/other.js": "export default 2;",
        "src/readme.md": "# text",
        "src/dot.png": b"\x89PNG",
        "src/plain.txt": "text",
        "node_modules/x/readme.md": "not ours",
    }
    built = build(write(**files, **{"wrangler.json": config(no_bundle=True, rules=rules)}))
    assert kinds(built) == {
        "index.js": "esm",
        "pages/home.js": "text",
        "lang/deep/de.js": "esm",
        "readme.md": "text",
        "dot.png": "data",
        "plain.txt": "text",
    }
    sent = deploy_body({}, built.main, built.modules)["modules"]
    assert sent["pages/home.js"]["kind"] == "text" and sent["dot.png"]["kind"] == "data", "the extension would lie"
    assert sent["plain.txt"] == "text" and isinstance(sent["index.js"], str)


def test_base_dir_names_the_modules(write: Write) -> None:
    files = {"src/index.js": "export default {};", "lib/x.js": "", "wrangler.json": ""}
    rules = [{"type": "ESModule", "globs": ["**/*.js"]}]
    files["wrangler.json"] = config(no_bundle=True, rules=rules, base_dir=".")
    built = build(write(**files))
    assert (built.main, kinds(built)) == ("src/index.js", {"src/index.js": "esm", "lib/x.js": "esm"})


def test_a_rule_without_fallthrough_ends_those_of_its_type(write: Write) -> None:
    rules = [{"type": "Text", "globs": ["**/*.a"]}, {"type": "Text", "globs": ["**/*.b"]}]
    folder = write(**{"src/index.js": "export default {};", "wrangler.json": config(rules=rules, no_bundle=True)})
    (finding,) = read_project(folder).findings
    assert "**/*.b has no effect" in finding.text and "fallthrough" in finding.hint


def test_a_commonjs_module_is_a_module_whose_default_is_its_exports(write: Write) -> None:
    rules = [{"type": "CommonJS", "globs": ["**/*.cjs"]}]
    files = {
        "src/index.js": 'import x from "./x.cjs"; export default x;',
        "src/x.cjs": 'const { join } = require("node:path");\nmodule.exports = { join };',
    }
    built = build(write(**files, **{"wrangler.json": config(no_bundle=True, rules=rules)}))
    assert kinds(built) == {"index.js": "esm", "x.cjs": "esm"}
    source = next(module.source for module in built.modules if module.path == "x.cjs").decode()
    assert source.split("\n")[1] == "module.exports = { join };", "lines keep their numbers"
    assert 'import * as __required0 from "node:path"' in source
    assert deploy_body({}, built.main, built.modules)["modules"]["x.cjs"]["kind"] == ModuleKind.ESM


def test_more_modules_than_a_node_takes_are_refused_here(write: Write) -> None:
    files = {f"src/m/{number}.txt": "" for number in range(1_005)}
    rules = [{"type": "Text", "globs": ["**/*.txt"]}]
    folder = write(**files, **{"src/index.js": "", "wrangler.json": config(no_bundle=True, rules=rules)})
    with pytest.raises(ProjectError, match="more than 1,000 files"):
        build(folder)


def test_a_python_main_is_one_clear_sentence(write: Write) -> None:
    folder = write(**{"src/entry.py": "", "wrangler.toml": 'name = "a"\nmain = "src/entry.py"'})
    with pytest.raises(ProjectError) as caught:
        build(folder)
    assert str(caught.value) == "`main` in wrangler.toml is entry.py: Atoll runs JavaScript, not Python"
