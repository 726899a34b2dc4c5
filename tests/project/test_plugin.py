"""What the bundler leaves to Atoll: rules by folder, WebAssembly of packages, modules of their own, and more."""

from __future__ import annotations

import json

import pytest

from atoll.project.build import Builder
from atoll.project.built import Built
from atoll.project.read import read_project
from tests.project.conftest import Write

WASM = b"\0asm\x01\0\0\0"


def build(write: Write, files: dict[str, str | bytes], **fields: object) -> Built:
    config = {"name": "a", "main": "src/index.ts", "compatibility_date": "2026-01-01", "minify": False, **fields}
    with Builder(read_project(write(**{"wrangler.json": json.dumps(config), **files}))) as builder:
        built = builder.build()
        assert built.bundled
        return builder.build()  # the second build of a session gives the same


def main_of(built: Built) -> str:
    return next(module.source.decode() for module in built.modules if module.path == built.main)


def others(built: Built) -> dict[str, str]:
    return {module.path: str(module.kind) for module in built.modules if module.path != built.main}


def test_a_rule_is_about_a_folder(write: Write) -> None:
    rules = [{"type": "Text", "globs": ["src/pages/*.js", "templates/**/*.json"]}]
    files: dict[str, str | bytes] = {
        "src/index.ts": "import a from './pages/a.js'; import b from './b.js'; "
        "import c from '../templates/deep/c.json'; import d from './d.json'; export default { a, b, c, d };",
        "src/pages/a.js": "not(a script",
        "src/b.js": "export default 'from a script';",
        "templates/deep/c.json": "not json",
        "src/d.json": '{"is": "json"}',
    }
    code = main_of(build(write, files, rules=rules))
    assert all(part in code for part in ("not(a script", "from a script", "not json", 'is: "json"'))


def test_the_first_rule_for_a_file_decides(write: Write) -> None:
    rules = [
        {"type": "Data", "globs": ["**/*.dat"]},
        {"type": "Text", "globs": ["**/*.dat", "**/*.tmpl"]},
        {"type": "CompiledWasm", "globs": ["**/*.prog"]},
    ]
    files: dict[str, str | bytes] = {
        "src/index.ts": "import a from './a.dat'; import b from './b.tmpl'; import c from './c.prog';"
        "export default { a, b, c };",
        "src/a.dat": b"\0",
        "src/b.tmpl": "Hello",
        "src/c.prog": WASM,
    }
    built = build(write, files, rules=rules)
    assert sorted(others(built).values()) == ["data", "wasm"] and '"Hello"' in main_of(built)


def test_webassembly_of_a_package_is_found_outside_of_its_exports(write: Write) -> None:
    files: dict[str, str | bytes] = {
        "src/index.ts": "import a from './own.wasm?module'; import b from 'pkg/deep/x.wasm';"
        "import c from 'pkg/named.wasm';"
        "import d from 'pkg/deep/x.wasm?module'; export default { a, b, c, d };",
        "src/own.wasm": WASM + b"\0",
        "node_modules/pkg/package.json": '{"name": "pkg", "exports": {"./named.wasm": "./dist/named.wasm"}}',
        "node_modules/pkg/deep/x.wasm": WASM,
        "node_modules/pkg/dist/named.wasm": WASM + b"\0\0",
    }
    built = build(write, files)
    assert sorted(others(built).values()) == ["wasm"] * 3
    assert all(f'from "./{path}"' in main_of(built) for path in others(built))


def test_computed_imports_find_modules_of_their_own(write: Write) -> None:
    rules = [{"type": "ESModule", "globs": ["lang/*.js"]}, {"type": "Text", "globs": ["**/*.md"]}]
    files: dict[str, str | bytes] = {
        "src/index.ts": "import en from './lang/en.js'; import { helper } from './helper';"
        "export default { fetch: (r: Request) => import(helper(r.url) as string), en };",
        "src/helper.ts": "export const helper = (x: string) => `./lang/${x}.js`;",
        "src/lang/en.js": "export default 'hello';",
        "src/lang/de.js": "export default 'hallo';",
        "src/about.md": "# About",
    }
    built = build(write, files, rules=rules, find_additional_modules=True)
    assert others(built) == {"lang/en.js": "esm", "lang/de.js": "esm", "about.md": "text"}
    assert 'from "./lang/en.js"' in main_of(built), "an imported one is not bundled a second time"


def test_an_optional_package_stays_optional(write: Write) -> None:
    files: dict[str, str | bytes] = {
        "src/index.ts": "import pkg from 'pkg'; export default pkg;",
        "node_modules/pkg/package.json": '{"name": "pkg", "main": "index.js"}',
        "node_modules/pkg/index.js": "let native = null;"
        "try { native = require('pg-native'); } catch (e) { native = e.code; }"
        "module.exports = { native, events: require('node:events') };",
    }
    built = build(write, files, compatibility_flags=["nodejs_compat"])
    first = main_of(built).splitlines()[0]
    assert 'from "node:events"' in first and "MODULE_NOT_FOUND" in first
    assert 'from "pg-native"' not in main_of(built), "an import would fail when the worker is loaded"


@pytest.mark.parametrize("package", ["cross-fetch", "node-fetch", "node-fetch-native", "whatwg-url", "fsevents"])
def test_packages_that_wrangler_replaces_are_replaced(write: Write, package: str) -> None:
    files: dict[str, str | bytes] = {
        "src/index.ts": f"import * as it from '{package}'; import 'cross-fetch/polyfill'; export default it;",
        f"node_modules/{package}/package.json": json.dumps({"name": package, "main": "index.js"}),
        f"node_modules/{package}/index.js": "module.exports = require('http').request;",
        "node_modules/mine/index.js": "module.exports = 'mine';",
    }
    assert "http" not in main_of(build(write, files, compatibility_flags=["nodejs_compat"]))
    replaced = build(write, files, compatibility_flags=["nodejs_compat"], alias={package: "mine"})
    assert "mine" in main_of(replaced), "an alias of the config comes first"
