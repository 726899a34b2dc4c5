"""What code needs from the platform is found by reading it, with its position in the sources."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.manifests.config_fields import Finding, FindingLevel
from atoll.project.build import Builder
from atoll.project.built import Built, BuiltModule
from atoll.project.model import Project
from atoll.project.platform import platform
from atoll.project.read import read_project
from atoll.project.uses import check_uses, read_uses
from atoll.workers import ModuleKind
from tests.project.conftest import ROOT, Write

CONFIG = 'name = "a"\nmain = "src/index.ts"\ncompatibility_date = "2025-01-01"\n'


def plain(source: str) -> Built:
    return Built("w.js", (BuiltModule("w.js", ModuleKind.ESM, source.encode()),), (), bundled=False)


def uses_of(source: str) -> dict[str, str]:
    """Global -> the strongest way in which it is used."""
    found = read_uses(plain(source), platform().globals).globals
    order = ("sure", "used", "asked")
    return {each.name: each.how for each in sorted(found, key=lambda each: -order.index(each.how))}


def checked(folder: Path) -> list[Finding]:
    project = read_project(folder)
    with Builder(project) as builder:
        return check_uses(project, builder.build())


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("X;", {"X": "sure"}),
        ("class A extends X {}", {"X": "sure"}),
        ("class A { static a = X; b = Y; [Z]() { W } }", {"X": "sure", "Y": "used", "Z": "sure", "W": "used"}),
        ("class A { static { X } }", {"X": "sure"}),
        ("(() => { X })(); (function () { Y })();", {"X": "sure", "Y": "sure"}),
        ("(() => { if (globalThis.Y) return; X })();", {"X": "used", "Y": "asked"}),
        ("(async () => { X })();", {"X": "used"}),
        ("export default { fetch() { return new X(); } };", {"X": "used"}),
        ("const { a = X, [Y]: b } = {};", {"X": "used", "Y": "sure"}),
        ("if (Math.random()) X; Math.a && Y; Math.b ? Z : 0;", {"X": "used", "Y": "used", "Z": "used"}),
        ("try { X } catch { Y } finally { Z }", {"X": "used", "Y": "used", "Z": "sure"}),
        ("for (const a of X) Y;", {"X": "sure", "Y": "used"}),
        ("typeof X; globalThis.Y; self['Z']; 'W' in globalThis;", dict.fromkeys("XYZW", "asked")),
        ("new globalThis.X();", {"X": "sure"}),
        ("X`a`; ({ Y }); `${Z}`; a: for (;;) break a;", {"X": "sure", "Y": "sure", "Z": "sure"}),
        ("X = 1; [Y] = [1]; ({ z: Z } = {});", {"X": "sure", "Y": "sure", "Z": "sure"}),
        # Declared names are not globals, wherever their declaration is.
        ("f(X); function f(a) { var b; return [a, b, arguments, f]; } var X;", {}),
        ("{ let X; X; } X;", {"X": "sure"}),
        ("if (1) { var X; } X;", {}),
        ("const a = function X() { X }; X;", {"X": "sure"}),
        ("try {} catch ({ X, ...Y }) { X; Y; }", {}),
        ("for (let X = 0, Y; X < 1; X++) Y; switch (1) { case 1: let Z; default: Z; }", {}),
        ("const [X, { Y, z: [Z = X] }, ...W] = []; X; Y; Z; W;", {}),
        ("export default class X { m() { X } } export const Y = 1; export { Y as Z }; Y;", {}),
        ("import X, { a as Y } from './x.js'; import * as Z from './y.js'; X; Y; Z;", {}),
        ("({ X: 1, Y() {} }).X.Y; import.meta.Z; label: { break label; } (X) => X;", {}),
        ("undefined; NaN; fetch; Response; console; structuredClone; WebSocketPair; EventSource;", {}),
    ],
)
def test_globals_are_found_by_their_scope(source: str, found: dict[str, str]) -> None:
    assert uses_of(source) == found


def test_unreadable_code_is_reported() -> None:
    found = check_uses(Project("a", Path(), None), plain("export default {"))
    assert [(each.level, each.field) for each in found] == [(FindingLevel.WARNING, "w.js")]


@pytest.fixture(params=["plain", "bundled"])
def how(request: pytest.FixtureRequest) -> Iterator[str]:
    """TypeScript that is used directly, and TypeScript that goes through the bundler (with a source map)."""
    yield "" if request.param == "plain" else "export enum Bundled { Yes }\n"


def test_a_missing_global_is_an_error_with_its_position(write: Write, how: str) -> None:
    source = how + "// one\nexport default {\n  fetch: () => new SharedWorker().transform(new Response()),\n};\n"
    (found,) = checked(write(**{"wrangler.toml": CONFIG, "src/index.ts": source}))
    line = 4 if how else 3
    assert (found.level, found.field) == (FindingLevel.ERROR, "SharedWorker")
    assert found.text == f"is not a global here (src/index.ts:{line})"


def test_a_file_that_tests_for_a_global_may_use_it(write: Write, how: str) -> None:
    source = (
        how
        + "const has = typeof SharedWorker !== 'undefined';\nexport default { fetch: () => has && new SharedWorker() };"
    )
    assert checked(write(**{"wrangler.toml": CONFIG, "src/index.ts": source})) == []
    sure = how + "typeof SharedWorker;\nnew SharedWorker();\nexport default {};"
    (found,) = checked(write(**{"src/index.ts": sure}))
    assert found.level is FindingLevel.ERROR


def test_a_missing_module_is_an_error_with_its_position(write: Write, how: str) -> None:
    source = how + "import { connect } from 'cloudflare:nowhere';\nexport default { fetch: () => connect('a:1') };"
    (found,) = checked(write(**{"wrangler.toml": CONFIG, "src/index.ts": source}))
    assert (found.level, found.field) == (FindingLevel.ERROR, "cloudflare:nowhere")
    assert found.text.startswith("is not available (src/index.ts:")


def test_an_export_that_is_missing_or_only_throws_is_reported(write: Write, how: str) -> None:
    source = how + "import { spawn, nope } from 'node:child_process';\nimport * as fs from 'node:fs';\n"
    source += "export default { fetch: () => [spawn, nope, fs] };"
    found = checked(write(**{"wrangler.toml": CONFIG, "src/index.ts": source}))
    assert [(each.level, each.field, each.text.partition(" (")[0].partition(":")[0]) for each in found] == [
        (FindingLevel.ERROR, "node:child_process", "has no export `nope`"),
        (FindingLevel.WARNING, "node:child_process", "has `spawn`, which throws when it is called"),
        (FindingLevel.NOTE, "node:fs", "is partly available"),
    ]


def test_globals_of_node_need_their_flag_or_a_date(write: Write, how: str) -> None:
    files = {"wrangler.toml": CONFIG, "src/index.ts": how + "export default { fetch: () => Buffer.from('') };"}
    (found,) = checked(write(**files))
    assert found.hint == "add nodejs_compat to `compatibility_flags`"
    assert checked(write(**{"wrangler.toml": CONFIG + 'compatibility_flags = ["nodejs_compat"]'})) == []
    since = platform().node_globals_since
    assert checked(write(**{"wrangler.toml": CONFIG.replace("2025-01-01", since)})) == []
    off = CONFIG.replace("2025-01-01", since) + 'compatibility_flags = ["no_nodejs_compat"]'
    assert len(checked(write(**{"wrangler.toml": off}))) == 1


def test_code_of_packages_for_other_platforms_is_a_warning(write: Write) -> None:
    package = (
        "export function title() { return document.title; }\nexport const port = () => import('cloudflare:nowhere');"
    )
    source = "import { title, port } from 'lib';\nexport default { fetch: () => [title, port] };"
    files = {"node_modules/lib/index.js": package, "node_modules/lib/package.json": '{"main":"index.js"}'}
    found = checked(write(**{"wrangler.toml": CONFIG, "src/index.ts": source, **files}))
    assert [(each.level, each.field) for each in found] == [
        (FindingLevel.WARNING, "cloudflare:nowhere"),
        (FindingLevel.WARNING, "document"),
    ]
    assert found[1].text == "is not a global here (node_modules/lib/index.js:1)"
    (found, *_) = checked(write(**{"node_modules/lib/index.js": "export const title = document.title, port = 1;"}))
    assert (found.level, found.field) == (FindingLevel.ERROR, "document")


def test_a_worker_in_the_older_syntax_has_its_env_as_globals(write: Write) -> None:
    source = "with ({}) {}\naddEventListener('fetch', () => [GREETING, KV, TOKEN, API_KEY, document]);"
    config = CONFIG.replace("src/index.ts", "w.js") + '[vars]\nGREETING = "hi"\n[secrets]\nrequired = ["TOKEN"]\n'
    project = read_project(write(**{"wrangler.toml": f'{config}[[kv_namespaces]]\nbinding = "KV"', "w.js": source}))
    found = check_uses(project, plain(source))
    assert [(each.level, each.field) for each in found] == [
        (FindingLevel.ERROR, "document"),
        (FindingLevel.WARNING, "API_KEY"),
    ]


def test_long_chains_of_operators_are_parsed() -> None:
    assert uses_of(f"const a = {'+'.join(['1'] * 20_000)}; X;") == {"X": "sure"}


def test_a_global_that_the_code_makes_itself_is_there(write: Write, how: str) -> None:
    source = how + "globalThis.__dirname ??= '/'; export default { where: __dirname, other: __filename };"
    (found,) = checked(write(**{"wrangler.toml": CONFIG, "src/index.ts": source}))
    assert found.field == "__filename"


def test_a_package_that_nothing_bundled_is_reported_with_its_place(write: Write) -> None:
    main = "import a from './a.js';\nimport b from 'left-pad';\nimport 'events';\nimport './sub/c.js';\n"
    main += "export default { fetch: () => [import('pg-native'), a, b] };"
    config = '{"name": "a", "main": "src/index.js", "no_bundle": true, "compatibility_date": "2026-01-01"}'
    files = {"src/index.js": main, "src/a.js": "export default 1;", "src/sub/c.js": "import '../a.js';"}
    found = checked(write(**files, **{"wrangler.json": config}))
    assert [(each.level, each.field) for each in found] == [
        (FindingLevel.ERROR, "left-pad"),
        (FindingLevel.NOTE, "pg-native"),
    ]
    assert "(index.js:2)" in found[0].text


def test_the_output_of_a_tool_is_judged_like_a_package(write: Write) -> None:
    about = '{"scripts": {"build": "x"}, "devDependencies": {"@cloudflare/vite-plugin": "1"}}'
    files = {
        "package.json": about,
        "vite.config.js": "",
        ".wrangler/deploy/config.json": '{"configPath": "../../dist/wrangler.json"}',
        "dist/wrangler.json": '{"name": "a", "main": "w.js", "no_bundle": true, "compatibility_date": "2026-01-01"}',
        "dist/w.js": "export default { fetch: () => document.title };",
    }
    project = read_project(write(**files), as_built=True)
    with Builder(project) as builder:
        (found,) = check_uses(project, builder.build())
    assert (found.level, found.field) == (FindingLevel.WARNING, "document")


def test_ctx_exports_is_an_error_in_own_code_with_an_older_date(write: Write, how: str) -> None:
    source = how + "export default { fetch: (r: Request, env: unknown, ctx: any) => ctx.exports.Other.fetch(r) };"
    (found,) = checked(write(**{"wrangler.toml": CONFIG, "src/index.ts": source}))
    assert (found.level, found.field) == (FindingLevel.ERROR, "ctx.exports") and "2025-11-17" in found.hint
    assert not checked(write(**{"wrangler.toml": CONFIG.replace("2025-01-01", "2026-01-01"), "src/index.ts": source}))


@pytest.mark.parametrize(
    "path",
    [*(ROOT / "tests/e2e/packages").glob("*.js"), *(path.parent for path in (ROOT / "examples").glob("*/atoll.toml"))],
    ids=lambda path: path.name,
)
def test_working_packages_and_examples_have_no_errors(write: Write, path: Path) -> None:
    """They include half a megabyte of popular packages. Findings about code for browsers are warnings."""
    write()  # provides the bundler
    assert [finding for finding in checked(path) if finding.level is FindingLevel.ERROR] == []
